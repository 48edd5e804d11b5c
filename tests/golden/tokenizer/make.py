#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes this folder's golden cases and their vocabulary, anew.

    pip install tokenizers==0.23.3
    tests/golden/tokenizer/make.py

Judges: for Google's rules tests/tokenizer/reference.py, for Hugging Face's the library itself. A case is a
line, one JSON object: kind; text, or bytes (hexadecimal) where it is not UTF-8; repeat, where the text, the
words and the ids come so many times; options, where they differ from the file's in settings.json; basic,
the words; ids. lower and cased hold Google's, hugging_face_lower and hugging_face_cased the library's for
the same texts, and hugging_face_switches the library's with its switches set by chance, and with special
tokens recognised.
"""
import json
import pathlib
import random
import sys
import unicodedata

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tokenizer"))
import reference  # noqa: E402
from texts import ALL_RULES_AGREE, EDGES, NOT_IN_VOCABULARY, RULES_DIFFER, WORDS  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ALL_TEXTS = EDGES + RULES_DIFFER + ALL_RULES_AGREE
RANDOM_TEXTS = 100
LIBRARY_OPTIONS = {"lower": True, "strip_accents": None, "clean": True, "ideographs": True, "special": False}


def decoded(text):
    return text.decode("utf-8", "ignore") if isinstance(text, bytes) else text


class Google:
    def __init__(self, vocabulary):
        self.vocabulary = reference.load_vocabulary(vocabulary)

    def words(self, text, options):
        return list(reference.words(text, options["lower"]))

    def ids(self, text, options):
        known = self.vocabulary
        return [known[p] for w in self.words(text, options) for p in reference.pieces(w, known)]


class HuggingFace:
    def __init__(self, vocabulary):
        self.vocabulary, self.known = str(vocabulary), {}

    def tokenizer(self, options):
        key = json.dumps(options, sort_keys=True)
        if key not in self.known:
            made = tokenizers.Tokenizer(models.WordPiece.from_file(self.vocabulary))
            made.normalizer = normalizers.BertNormalizer(
                clean_text=options["clean"], handle_chinese_chars=options["ideographs"],
                strip_accents=options["strip_accents"], lowercase=options["lower"])
            made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            if options["special"]:
                made.add_special_tokens(SPECIAL)
            self.known[key] = made
        return self.known[key]

    def words(self, text, options):
        made = self.tokenizer(options)
        return [w for w, _ in made.pre_tokenizer.pre_tokenize_str(made.normalizer.normalize_str(text))]

    def ids(self, text, options):
        return self.tokenizer(options).encode(text, add_special_tokens=False).ids


def write_vocabulary(path):
    """Special tokens, four that can never match, words, and their characters, each in both its forms."""
    characters = set()
    for _, text, *_ in ALL_TEXTS:
        for lower in (True, False):
            for word in reference.words(decoded(text), lower):
                if not NOT_IN_VOCABULARY & set(word):
                    characters |= set(word)
    tokens = SPECIAL + ["", "##", "\u2028", "##\u2028"] + WORDS
    for c in sorted(characters):
        tokens += [c, "##" + c]
    path.write_bytes("".join(t + "\n" for t in tokens).encode())


def random_texts(seed, count):
    """Strings of what the written cases are made of, so that the vocabulary knows it, and of anything."""
    draw = random.Random(seed)
    pool = sorted(set("".join(decoded(text) for _, text, *_ in ALL_TEXTS)))
    words = [w for w in WORDS if not w.startswith("##")]
    for _ in range(count):
        parts = []
        for _ in range(draw.randint(3, 12)):
            kind = draw.random()
            if kind < 0.25:
                parts.append(draw.choice(words) + draw.choice(" -"))
            elif kind < 0.85:
                parts.append(draw.choice(pool))
            else:
                c = draw.randrange(0x30000)
                parts.append(chr(c if not 0xD800 <= c <= 0xDFFF else 0x41))
        yield "".join(parts)


def case(judge, kind, text, repeat, options, own_options=None):
    plain = decoded(text)
    row = {"kind": kind}
    row.update({"bytes": text.hex()} if isinstance(text, bytes) else {"text": text})
    if own_options:
        row["options"] = own_options
    basic, ids = judge.words(plain, options), judge.ids(plain, options)
    if repeat > 1:
        row["repeat"] = repeat
        assert judge.words(plain * repeat, options) == basic * repeat
        assert judge.ids(plain * repeat, options) == ids * repeat
    if not options["special"]:
        row["basic"] = basic
    return {**row, "ids": ids}


def write_cases(name, rows):
    path = HERE / f"{name}.jsonl"
    with open(path, "w", encoding="ascii", newline="\n") as out:
        for row in rows:
            out.write(json.dumps(row, separators=(",", ":")) + "\n")
    print(f"{path.name}: {len(rows)} cases, {path.stat().st_size} bytes")


def all_cases(judge, lower, seed):
    options = {**LIBRARY_OPTIONS, "lower": lower}
    rows = [case(judge, kind, text, *repeat or [1], options) for kind, text, *repeat in ALL_TEXTS]
    return rows + [case(judge, "random", text, 1, options) for text in random_texts(seed, RANDOM_TEXTS)]


def switched_cases(judge, seed):
    draw = random.Random(seed)
    rows = []
    for kind, text, *_ in EDGES + ALL_RULES_AGREE:
        if "special token" in kind:
            for lower in (True, False):
                own = {"lower": lower, "special": True}
                rows.append(case(judge, kind, text, 1, {**LIBRARY_OPTIONS, **own}, own))
    texts = [(kind, text) for kind, text, *repeat in ALL_TEXTS if not repeat and len(text) < 90]
    for kind, text in texts + [("random", text) for text in random_texts(seed, RANDOM_TEXTS)]:
        own = {"lower": draw.random() < 0.5, "strip_accents": draw.choice([None, True, False]),
               "clean": draw.random() < 0.5, "ideographs": draw.random() < 0.5}
        rows.append(case(judge, kind, text, 1, {**LIBRARY_OPTIONS, **own}, own))
    return rows


def check_declared_differences(google, library):
    """That the texts said to tell the rules apart do, and that the others do not."""
    for texts, differ in ((RULES_DIFFER, True), (ALL_RULES_AGREE, False)):
        for kind, text, *_ in texts:
            results = {(tuple(a), tuple(b)) for a, b in zip(google[kind, text], library[kind, text])}
            assert any(a != b for a, b in results) == differ, (kind, text)


def main():
    assert unicodedata.unidata_version == "14.0.0", "please run this with Python 3.11, whose Unicode judges"
    assert tokenizers.__version__ == "0.23.3", "please install tokenizers 0.23.3: another may judge otherwise"
    vocabulary = HERE / "vocab.txt"
    write_vocabulary(vocabulary)
    google, library = Google(vocabulary), HuggingFace(vocabulary)
    seen = {}
    for judge, prefix in ((google, ""), (library, "hugging_face_")):
        for seed, (name, lower) in enumerate((("lower", True), ("cased", False))):
            rows = all_cases(judge, lower, seed)
            write_cases(prefix + name, rows)
            for (kind, text, *_), row in zip(ALL_TEXTS, rows):
                seen.setdefault(judge, {}).setdefault((kind, text), []).append(row["ids"])
    check_declared_differences(seen[google], seen[library])
    write_cases("hugging_face_switches", switched_cases(library, 2))


main()

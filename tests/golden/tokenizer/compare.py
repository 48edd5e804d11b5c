#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares ./tokenize with the Hugging Face library on many lines.

    pip install tokenizers==0.23.3
    tests/golden/tokenizer/compare.py --vocab VOCABULARY [--cased] [--rules google] FILE...

Half of the lines are drawn from the files, half are made by chance: words of the files, mixed with
characters of every Unicode category and with what tokenizers trip over. With --every each code point is a
line, too. The VOCABULARY `characters` is one of every character by itself, so that ids differ wherever
words do. By Hugging Face's rules every id must be equal; by Google's the lines that differ are cut down to
the characters that make the difference, and each must have one of the known reasons. Status 1 otherwise.
"""
import argparse
import collections
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402
from tokenizers import models, normalizers, pre_tokenizers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAPS = ["\u03a3", "\u0391\u03a3", "\u0130", "\u1e9e", "\ufb03", "e\u0301", "\uff76\uff9e", "\ud55c\uad6d",
         "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e19\u0e49\u0e33", "\u05e9\u05c1",
         "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea",
         "\ue000", "\u0378", "\U0002b820", "\U0002b920", "\U0002ceb0", "\uf900", "\U0002f800", "\u037e",
         "\u1fef", "\u2329", "\u2260", "\u201c", "\u2026", "##", "[CLS]", "[MASK]", "\r", "\t", "\0",
         "\x0b", "\x1c", "\u0085", "\u2028", "\u3000", "\u302e\u1715", "\U0001d165\U0001d16d", "\u00ad",
         "\u0345", "\u4e2d\u6587", "C++", "3.14"]


class Ours:
    """./tokenize, kept open: lines in, as many lines of ids out."""

    def __init__(self, tokenize, vocab, cased, rules):
        command = [tokenize, "--ids", "--vocab", vocab, "--rules", rules] + ["--cased"] * cased
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def write(self, lines):
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())
        self.process.stdin.flush()

    def encode_all(self, lines):
        writer = threading.Thread(target=self.write, args=[lines])
        writer.start()
        for _ in lines:
            row = self.process.stdout.readline()
            assert row.endswith(b"\n"), "a line out for each line in"
            yield [int(i) for i in row.split()]
        writer.join()

    def close(self):
        self.process.stdin.close()
        assert self.process.stdout.read() == b"" and self.process.wait() == 0


class Library:
    def __init__(self, vocab, cased):
        self.tokenizer = tokenizers.Tokenizer(models.WordPiece.from_file(vocab))
        self.tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
        self.tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def encode_all(self, lines):
        for i in range(0, len(lines), 10000):
            for encoding in self.tokenizer.encode_batch(lines[i:i + 10000], add_special_tokens=False):
                yield encoding.ids

    def normalised(self, x):
        return self.tokenizer.normalizer.normalize_str(f"a{x}b")[1:-1]

    def is_punctuation(self, x):
        return len(self.tokenizer.pre_tokenizer.pre_tokenize_str(f"a{x}b")) == 3


def cleaned(text):
    """What may stand in a line of UTF-8."""
    return "".join(x for x in text if x != "\n" and not 0xD800 <= ord(x) <= 0xDFFF)


def real_lines(files, count, draw):
    lines = []
    for file in files:
        with open(file, encoding="utf-8", errors="ignore", newline="\n") as text:
            lines += [line.rstrip("\n") for line in text]
    return draw.sample(lines, count) if len(lines) > count else lines


def random_lines(real, count, draw):
    by_category = collections.defaultdict(list)
    for c in range(0x110000):
        by_category[unicodedata.category(chr(c))].append(chr(c))
    categories = sorted(by_category)
    words = [w for line in draw.sample(real, min(2000, len(real))) for w in line.split()] or ["the", "cat"]

    def part():
        kind = draw.random()
        if kind < 0.35:
            return draw.choice(words)
        if kind < 0.5:
            return draw.choice(words).upper() + draw.choice(" .")
        if kind < 0.75:
            return draw.choice(by_category[draw.choice(categories)])
        if kind < 0.95:
            return draw.choice(TRAPS)
        if kind < 0.998:
            return " "
        return draw.choice(["a", "\u00e9", "\u0436", "e\u0301", "\u4e2d"]) * draw.randint(95, 205)

    return [cleaned("".join(part() for _ in range(draw.randint(1, 20)))) for _ in range(count)]


def reason(part, cased, library):
    """Why the two rules may differ on a text of which no character can be left out."""
    categories = {unicodedata.category(x) for x in part}
    if any(0x2B820 <= ord(x) <= 0x2B91F for x in part):
        return "U+2B820 to 2B91F: the library leaves them in words"
    if "Co" in categories:
        return "private use: the library drops it"
    if len(library.tokenizer.normalizer.normalize_str(part)) > 100:  # syllables become two or three
        return "word of 101 to 200 characters: [UNK] in the library"
    if "\u03a3" in part and not cased:
        return "final sigma: the library has none"
    for x in part:
        category, result = unicodedata.category(x), library.normalised(x)
        if category == "Mn" and not cased and result != "":
            return "mark, newer than the library's table"
        if category[0] in "LMNPSZ" and category != "Mn" and not cased and result == "" and x != "\ufffd":
            return "mark in the library's table only"
        if category == "Cf" and result != "":
            return "format control, newer than the library's table"
        ours = category.startswith("P") or x in "$+<=>^`|~"
        if ours and not library.is_punctuation(x):
            return "punctuation, newer than the library's table"
        if library.is_punctuation(x) and not ours:
            return "punctuation in the library's table only"
        if not cased and unicodedata.normalize("NFD", x.lower()) != x == result:
            return "decomposition, newer than the library's data"
        if category == "Cn" and result != x:
            return "cased letter, newer than Python's data"
    if sum(1 for x in part if unicodedata.combining(x)) > 1:
        return "order of marks, some newer than the library's table"
    return None


def smallest(line):
    """The line without what the difference does not need; asks (yield) whether shorter ones differ."""
    size = len(line) // 2
    while size > 0:
        at = 0
        while at < len(line):
            shorter = line[:at] + line[at + size:]
            if (yield shorter):
                line = shorter
            else:
                at += size
        size //= 2
    return line


def explain(line, cased, library):
    """(reason, characters) of every difference in a line; the reason is None where none is known."""
    found = set()
    while (yield line):
        part = yield from smallest(line)
        found.add((reason(part, cased, library), part))
        # Removes the characters that cause this difference, so that other differences in the line come to light.
        culprits = {x for x in part if reason(x, cased, library)} or set(part)
        line = "".join(x for x in line if x not in culprits)
    return found


def answered(askers, answers):
    """What the askers return in the end; all their questions of one round go together."""
    results, questions = [], [(asker, next(asker)) for asker in askers]
    while questions:
        now, questions = questions, []
        for (asker, _), answer in zip(now, answers([question for _, question in now])):
            try:
                questions.append((asker, asker.send(answer)))
            except StopIteration as end:
                results.append(end.value)
    return results


def write_characters(path):
    """A vocabulary of every character, at the start of words and inside."""
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write("[UNK]\n")
        for c in range(0x110000):
            if c != 0xA and not 0xD800 <= c <= 0xDFFF:
                out.write(f"{chr(c)}\n##{chr(c)}\n")


def points(part):
    return " ".join(f"U+{ord(x):04X}" for x in part) if len(part) < 7 else f"{len(part)} characters"


def arguments():
    parser = argparse.ArgumentParser(description="compares ./tokenize with the Hugging Face library")
    parser.add_argument("files", nargs="+", help="text, one sentence a line")
    parser.add_argument("--vocab", required=True, help="vocab.txt, or: characters")
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--rules", choices=["google", "hugging-face"], default="hugging-face")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--every", action="store_true", help="a line for every code point, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenize", default=str(ROOT / "tokenize"))
    return parser.parse_args()


def compare(given, vocab):
    draw = random.Random(given.seed)
    real = real_lines(given.files, given.lines // 2, draw)
    lines = real + random_lines(real, given.lines - len(real), draw)
    if given.every:
        lines += [f"ab{x}de {x}" for x in map(cleaned, map(chr, range(0x110000)))]
    ours, library = Ours(given.tokenize, vocab, given.cased, given.rules), Library(vocab, given.cased)

    ids, different, real_different = 0, [], 0
    for i, (a, b) in enumerate(zip(ours.encode_all(lines), library.encode_all(lines))):
        ids += len(b)
        if a != b:
            different.append(lines[i])
            real_different += i < len(real)

    def differ(texts):
        return [a != b for a, b in zip(ours.encode_all(texts), library.encode_all(texts))]
    counts, examples = collections.Counter(), collections.defaultdict(set)
    for found in answered([explain(line, given.cased, library) for line in different], differ):
        counts.update({why for why, _ in found})
        for why, part in found:
            examples[why].add(points(part))
    ours.close()
    for why, count in counts.most_common():
        shown = sorted(examples[why], key=lambda p: (len(p), p))[:5 if why else 20]
        print(f"  {count:7}  {why or 'NOT EXPLAINED'}: {', '.join(shown)}")
    print(f"{pathlib.Path(given.vocab).name}, {'cased' if given.cased else 'lower case'}, {given.rules}: "
          f"{len(lines)} lines ({len(real)} real), {ids} ids; "
          f"from tokenizers {tokenizers.__version__} differ {len(different)} lines ({real_different} real)")
    return 1 if counts[None] or (different and given.rules == "hugging-face") else 0


def main():
    given = arguments()
    if given.vocab != "characters":
        return compare(given, given.vocab)
    with tempfile.TemporaryDirectory() as folder:
        write_characters(f"{folder}/vocab.txt")
        return compare(given, f"{folder}/vocab.txt")


sys.exit(main())

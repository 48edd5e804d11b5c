#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hugging Face tokenizers, measured for compare.py tokenizer; see peer_system.serve. It is asked:
  {"do": "start", "text": PATH, "vocabulary": PATH, "ids": PATH, "normalizer": {...}, "recognise": BOOL}
                                   reads text and vocabulary, and tells the versions
  {"do": "compare"}                how many tokens ours and it find, and how many lines differ
  {"do": "choose", "work": NAME}   tries the library's calls that do this work, on a part of the text
  {"do": "run", "work": NAME}      seconds of the fastest of them on the whole text
`normalizer` and `recognise` (whether "[SEP]" in the text is that token) are those of a vocab.txt; a
tokenizer.json has its own."""
import array
import gc
import os
import platform
import sys
import time

sys.dont_write_bytecode = True

import peer_system as system  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SAMPLE = 1e6  # characters to choose a call by


def blocks(items, size):
    return (items[i : i + size] for i in range(0, len(items), size))


def seconds(call):
    """Of one call: the mean of as many as fill a fifth of a second."""
    start, calls, passed = time.perf_counter(), 0, 0
    while passed < 0.2:
        call()
        calls += 1
        passed = time.perf_counter() - start
    return passed / calls


class Text:
    """Lines, and the path of a file that holds them."""

    def __init__(self, lines, path):
        self.lines, self.path = lines, path
        self.ids = None

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")
        return cls(lines[:-1] if lines[-1] == "" else lines, path)

    def sample(self):
        """Lines from everywhere in the text."""
        step = max(1, int(sum(map(len, self.lines)) / SAMPLE))
        file = os.memfd_create("sample")
        lines = self.lines[::step]
        with open(f"/dev/fd/{file}", "w", encoding="utf-8", newline="\n") as out:
            out.writelines(line + "\n" for line in lines)
        return Text(lines, f"/dev/fd/{file}")


class Bench:
    def __init__(self, request):
        self.vocabulary, self.normalizer = request["vocabulary"], request["normalizer"]
        self.recognise, self.ours = request["recognise"], request["ids"]
        self.text = Text.read(request["text"])
        self.sample = self.text.sample()
        self.tokenizer = self.load()
        self.chosen = {}

    def bare(self, model):
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.BertNormalizer(**self.normalizer)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        return tokenizer

    def load(self):
        if self.vocabulary.endswith(".json"):
            tokenizer = Tokenizer.from_file(self.vocabulary)
            tokenizer.no_truncation()
            tokenizer.no_padding()
        else:
            tokenizer = self.bare(models.WordPiece.from_file(self.vocabulary, unk_token="[UNK]"))
            tokenizer.add_special_tokens([t for t in SPECIAL if tokenizer.token_to_id(t) is not None])
            tokenizer.encode_special_tokens = not self.recognise
        return tokenizer

    def train(self, start):
        tokenizer = self.bare(models.WordPiece(unk_token="[UNK]"))
        trainer = trainers.WordPieceTrainer(
            vocab_size=8000, min_frequency=2, show_progress=False, special_tokens=SPECIAL
        )
        start(tokenizer, trainer)

    def ids_of(self, text):
        if text.ids is None:
            text.ids = []
            for block in blocks(text.lines, 1000):
                text.ids += [e.ids for e in self.tokenizer.encode_batch(block, add_special_tokens=False)]
        return text.ids

    def calls(self, work, text):
        """The library's ways to do the work, by name."""
        t = self.tokenizer
        sizes = {"100 lines a call": 100, "1,000 lines a call": 1000}
        if len(self.text.lines) < 2e6:  # it keeps about 2 kB a line
            sizes["all lines in one call"] = len(text.lines)
        found = {}
        if work in ("encode", "pieces"):
            batch = {"encode_batch": t.encode_batch}
            if work == "encode" and hasattr(t, "encode_batch_fast"):
                batch["encode_batch_fast"] = t.encode_batch_fast  # leaves the offsets out
            for call, function in batch.items():
                for name, size in sizes.items():
                    found[f"{call}, {name}"] = lambda function=function, size=size: [
                        len(function(block, add_special_tokens=False)) for block in blocks(text.lines, size)
                    ]
            found["encode, a line a call"] = lambda: [
                len(t.encode(line, add_special_tokens=False)) for line in text.lines
            ]
            found["encode, the text in one call"] = lambda: t.encode(
                "\n".join(text.lines), add_special_tokens=False
            )
        elif work == "decode":
            ids = self.ids_of(text)
            for name, size in sizes.items():
                found[f"decode_batch, {name}"] = lambda size=size: [
                    len(t.decode_batch(block)) for block in blocks(ids, size)
                ]
            found["decode, a line a call"] = lambda: [len(t.decode(line)) for line in ids]
        elif work == "train":
            found["train_from_iterator"] = lambda: self.train(
                lambda tokenizer, trainer: tokenizer.train_from_iterator(text.lines, trainer)
            )
            found["train, from a file"] = lambda: self.train(
                lambda tokenizer, trainer: tokenizer.train([text.path], trainer)
            )
        elif work == "load":
            name = "Tokenizer" if self.vocabulary.endswith(".json") else "WordPiece"
            found[f"{name}.from_file"] = self.load
        return found

    def choose(self, request):
        work = request["work"]
        calls = self.calls(work, self.sample)
        rounds = [{name: seconds(call) for name, call in calls.items()} for _ in range(2)]
        tried = {name: min(times[name] for times in rounds) for name in calls}
        self.chosen[work] = min(tried, key=tried.get)
        return {"call": self.chosen[work], "tried": tried, "lines": len(self.sample.lines)}

    def run(self, request):
        work = request["work"]
        return {"seconds": seconds(self.calls(work, self.text)[self.chosen[work]])}

    def compare(self, request):
        """Ours: of each line how many, then those, 32 bits each."""
        ours = array.array("i")
        with open(self.ours, "rb") as file:
            ours.frombytes(file.read())
        found = {"tokens": 0, "peer_tokens": 0, "different_lines": 0, "first_different_line": 0}
        at = 0
        for number, theirs in enumerate(self.ids_of(self.text), 1):
            line = ours[at + 1 : at + 1 + ours[at]]
            at += 1 + len(line)
            found["tokens"] += len(line)
            found["peer_tokens"] += len(theirs)
            if list(line) != theirs:
                found["different_lines"] += 1
                found["first_different_line"] = found["first_different_line"] or number
        return found


def start(request):
    global tokenizers, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    import tokenizers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    gc.disable()
    return Bench(request), {"version": tokenizers.__version__, "python": platform.python_version()}


if __name__ == "__main__":
    system.serve(start)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hugging Face tokenizers, measured for compare.py tokenizer; see peer.serve. Of the library's calls that do a work the fastest
on a part of the text is measured."""
import array
import gc
import os
import sys

sys.dont_write_bytecode = True

import peer  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SAMPLE = 1e6  # characters to choose a call by


def blocks(items, size):
    return (items[i : i + size] for i in range(0, len(items), size))


class Text:
    """Lines, the path of a file that holds them, and their ids where somebody asks for them."""

    def __init__(self, lines, path):
        self.lines, self.path, self.ids = lines, path, None

    def sample(self):
        """Lines from everywhere in the text."""
        step = max(1, int(sum(map(len, self.lines)) / SAMPLE))
        file = os.memfd_create("sample")
        with open(f"/dev/fd/{file}", "w", encoding="utf-8", newline="\n") as out:
            out.writelines(line + "\n" for line in self.lines[::step])
        return Text(self.lines[::step], f"/dev/fd/{file}")


class Tokenizers:
    def __init__(self):
        global tokenizers, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
        import tokenizers
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

        gc.disable()
        self.text = None

    def open(self, request):
        """Once: all works are of one text and one vocabulary."""
        self.request = request
        with open(request["text"], encoding="utf-8", newline="\n") as file:
            self.text = Text(file.read().split("\n")[:-1], request["text"])
        self.sample, self.tokenizer = self.text.sample(), self.load()
        self.different = self.compare(request["ids"])

    def bare(self, model):
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.BertNormalizer(**self.request["normalizer"])
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        return tokenizer

    def load(self):
        """A tokenizer.json has its own normalizer, and knows whether "[SEP]" in the text is that token."""
        vocabulary = self.request["vocabulary"]
        if vocabulary.endswith(".json"):
            tokenizer = Tokenizer.from_file(vocabulary)
            tokenizer.no_truncation()
            tokenizer.no_padding()
        else:
            tokenizer = self.bare(models.WordPiece.from_file(vocabulary, unk_token="[UNK]"))
            tokenizer.add_special_tokens([t for t in SPECIAL if tokenizer.token_to_id(t) is not None])
            tokenizer.encode_special_tokens = not self.request["recognise"]
        return tokenizer

    def train(self, start):
        tokenizer = self.bare(models.WordPiece(unk_token="[UNK]"))
        start(tokenizer, trainers.WordPieceTrainer(
            vocab_size=8000, min_frequency=2, show_progress=False, special_tokens=SPECIAL
        ))

    def ids_of(self, text):
        if text.ids is None:
            text.ids = []
            for block in blocks(text.lines, 1000):
                text.ids += [e.ids for e in self.tokenizer.encode_batch(block, add_special_tokens=False)]
        return text.ids

    def calls(self, work, text):
        """The library's ways to do the work, by name."""
        t, lines = self.tokenizer, text.lines
        if work == "load":
            return {"from_file": self.load}
        if work == "train":
            return {
                "train_from_iterator": lambda: self.train(lambda one, trainer: one.train_from_iterator(lines, trainer)),
                "train, from a file": lambda: self.train(lambda one, trainer: one.train([text.path], trainer)),
            }
        if work == "decode":
            items, batch, single = self.ids_of(text), {"decode_batch": t.decode_batch}, {"decode": t.decode}
            more = {}
        else:
            items, batch, single = lines, {"encode_batch": t.encode_batch}, {"encode": t.encode}
            if work == "encode" and hasattr(t, "encode_batch_fast"):
                batch["encode_batch_fast"] = t.encode_batch_fast  # leaves the offsets out
            more = {"add_special_tokens": False}
        sizes = {"100 lines a call": 100, "1,000 lines a call": 1000}
        if len(self.text.lines) < 2e6:  # it keeps about 2 kB a line
            sizes["all lines in one call"] = len(items)
        found = {}
        for name, call in batch.items():
            for said, size in sizes.items():
                found[f"{name}, {said}"] = lambda call=call, size=size: [len(call(b, **more)) for b in blocks(items, size)]
        for name, call in single.items():
            found[f"{name}, a line a call"] = lambda call=call: [len(call(one, **more)) for one in items]
        return found

    def work(self, request):
        if self.text is None:
            self.open(request)
        tried = {name: peer.seconds_of(call) for name, call in self.calls(request["work"], self.sample).items()}
        fastest = min(tried, key=tried.get)
        self.call = self.calls(request["work"], self.text)[fastest]
        ids = f"ids differ in {self.different} lines" if self.different else "ids equal in every line"
        return {
            "version": peer.version(tokenizers),
            "said": f"{fastest}; {ids}",
            "tried": tried,
            "agrees": self.different == 0,
        }

    def turn(self):
        return {"seconds": peer.seconds_of(self.call)}

    def compare(self, path):
        """How many lines differ from ours: of each line how many ids, then those, 32 bits each."""
        ours, at, different = array.array("i"), 0, 0
        with open(path, "rb") as file:
            ours.frombytes(file.read())
        for theirs in self.ids_of(self.text):
            line = ours[at + 1 : at + 1 + ours[at]]
            at += 1 + len(line)
            different += list(line) != theirs
        return different


if __name__ == "__main__":
    peer.serve(Tokenizers)

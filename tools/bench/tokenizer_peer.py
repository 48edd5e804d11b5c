#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures Hugging Face tokenizers for compare.py tokenizer. See peer.serve. The library can encode and decode in
several ways; the way that is fastest on a part of the text is measured."""
import array
import gc
import sys

sys.dont_write_bytecode = True

import peer  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SAMPLE = 20000  # lines on which the ways are compared


def blocks(items, size):
    return (items[i : i + size] for i in range(0, len(items), size))


class Tokenizers:
    def __init__(self):
        global tokenizers, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
        import tokenizers
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

        gc.disable()
        self.lines = None

    def open(self, request):
        """Reads the text and the vocabulary, which all works share. Counts the lines whose ids differ from those of
        ./bench."""
        self.request = request
        with open(request["text"], encoding="utf-8", newline="\n") as file:
            self.lines = file.read().split("\n")[:-1]
        self.tokenizer, self.ids = self.load(), []
        for block in blocks(self.lines, 1000):
            self.ids += [e.ids for e in self.tokenizer.encode_batch(block, add_special_tokens=False)]
        ours, at, self.different = array.array("i"), 0, 0
        with open(request["ids"], "rb") as file:  # for each line: the number of ids, then the ids, 32 bits each
            ours.frombytes(file.read())
        for theirs in self.ids:
            line = ours[at + 1 : at + 1 + ours[at]]
            at += 1 + len(line)
            self.different += list(line) != theirs

    def bare(self, model):
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.BertNormalizer(**self.request["normalizer"])
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        return tokenizer

    def load(self):
        """Loads the vocabulary. A tokenizer.json has its own normalizer and says whether "[SEP]" in text is a token."""
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

    def train(self):
        self.bare(models.WordPiece(unk_token="[UNK]")).train([self.request["text"]], trainers.WordPieceTrainer(
            vocab_size=8000, min_frequency=2, show_progress=False, special_tokens=SPECIAL
        ))

    def ways(self, work, step):
        """Returns the ways in which the library can do the work on every `step`-th line, as a dictionary by name."""
        t, items, more = self.tokenizer, self.lines[::step], {"add_special_tokens": False}
        if work == "load":
            return {"from_file": self.load}
        if work == "train":
            return {"train, from a file": self.train}
        if work == "decode":
            batch, one, items, more = t.decode_batch, t.decode, self.ids[::step], {}
        else:  # encode_batch_fast leaves the offsets out
            batch, one = t.encode_batch_fast if work == "encode" else t.encode_batch, t.encode
        found = {}
        for size in (100, 1000):
            call = lambda size=size: [len(batch(block, **more)) for block in blocks(items, size)]  # noqa: E731
            found[f"{batch.__name__}, {size} lines a call"] = call
        found[f"{one.__name__}, a line a call"] = lambda: [len(one(item, **more)) for item in items]
        return found

    def work(self, request):
        if self.lines is None:
            self.open(request)
        ways = self.ways(request["work"], 1 + len(self.lines) // SAMPLE)
        fastest = next(iter(ways))
        if len(ways) > 1:
            fastest = min(ways, key=lambda name: peer.seconds_of(ways[name]))
        self.call = self.ways(request["work"], 1)[fastest]
        ids = f"ids differ in {self.different} lines" if self.different else "ids equal in every line"
        return {"version": peer.version(tokenizers), "said": f"{fastest}; {ids}", "agrees": self.different == 0}

    def turn(self):
        return {"seconds": peer.seconds_of(self.call)}


if __name__ == "__main__":
    peer.serve(Tokenizers)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py CASE [OPTION of ./bench CASE ...]: runs ./bench in turns with the fastest other software for the same work,
checks that both compute the same, and prints both with the ratio of their medians (above 1: ours is faster).
  tokenizer   beside Hugging Face's tokenizers          attention   beside PyTorch's scaled_dot_product_attention
  train       beside PyTorch                            decode      UniLM beside generate of Hugging Face's transformers
Needs Python 3. What is measured beside ours is imported by the Pythons of --peer alone; where none has it, ours is
measured alone."""
import argparse
import json
import os
import signal
import sys

sys.dont_write_bytecode = True

import compare_others  # noqa: E402
import compare_train  # noqa: E402
from children import HERE, HIDDEN, Bench, note, progress  # noqa: E402

CASES = {
    "tokenizer": compare_others.Tokenizer,
    "train": compare_train.Train,
    "attention": compare_others.Attention,
    "decode": compare_others.Decode,
}


def options():
    parser = argparse.ArgumentParser(
        "compare.py", description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    root = os.path.dirname(os.path.dirname(HERE))
    add = parser.add_argument
    add("case", choices=CASES)
    add("--peer", metavar="PYTHON,...", default=sys.executable, help="Pythons that have the other software: the first "
        "that can is taken, of train the fastest (default: the one that runs this)")
    add("--bench", metavar="FILE", default=f"{root}/bench", help="the program (default: ./bench of this tree)")
    add("--json", action="store_true", help="JSON, with each run, op, product and setting tried")
    add("--save", metavar="FILE", help="the JSON into a file, too, which is written after each row")
    add("--eager", action="store_true", help="train: do not try torch.compile, which takes minutes a mark")
    add("--variant", metavar="NAME=CHOICE,...", default="", help="train: these settings of PyTorch alone, not a search "
        f"for the fastest: {compare_train.choices()}; what is not named is the first of those this PyTorch has")
    found, words = parser.parse_known_args()
    found.peers, found.words = found.peer.split(","), [found.case, *words]
    if not os.path.exists(found.bench):
        sys.exit(f"error: there is no {found.bench}; `make bench` makes it")
    try:
        found.only = compare_train.named(found.variant)
        if found.eager and found.only:
            raise ValueError("--variant excludes --eager")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    return found


class Comparison:
    def __init__(self, chosen):
        self.options, self.all, self.beside = chosen, {}, None
        self.list = "marks" if chosen.case == "train" else "rows"

    def run(self):
        """The exit status."""
        bench = Bench(self.options.bench, self.options.words)
        stopped = False
        try:
            for message in bench:
                self.take(message, bench)
        except KeyboardInterrupt:
            stopped = True
            note("stopped as asked; the rows that are there are whole")
        finally:
            if self.beside:
                self.beside.end()
            status = bench.end()
        if self.all:
            self.save(not stopped and status == 0)
            if self.options.json:
                print(json.dumps(self.all, indent=2))
            elif not stopped:
                print(self.beside.summary(self.all[self.list]), end="")
        return status

    def take(self, message, bench):
        say = message.pop("say")
        if say == "head":
            self.all = message["json"]
            self.all["peer"] = None
            self.beside = CASES[self.options.case](self.options, self.all)
            self.text, _, self.columns = (message["text"].rstrip("\n") + "\n\n").partition("\n\n")
        elif say == "start":
            self.beside.ready(message)
            bench.go_on()
            self.save(False)
        elif say == "turn":
            bench.go_on(self.beside.in_turn())
        elif say == "row":
            self.head()
            lines = self.beside.shown(message["row"], message["text"])
            self.all[self.list].append(message["row"])
            self.say("".join(lines))
            self.save(False)

    def head(self):
        """Once: the machine, the peer, the names of columns."""
        if self.text is None:
            return
        columns = self.columns.rstrip("\n")
        names = "\n" + self.beside.header(columns) + "\n" if columns else ""
        self.say("\n".join((self.text, *self.beside.head)) + "\n" + names)
        self.text = None

    def say(self, text):
        progress("")
        if not self.options.json:
            print(text, end="", flush=True)

    def save(self, complete):
        self.all["complete"] = complete
        if not self.options.save:
            return
        so_far = [self.beside.so_far] if self.beside.so_far else []
        place = self.options.save + ".new"
        with open(place, "w") as file:
            json.dump({**self.all, self.list: self.all[self.list] + so_far}, file, indent=2)
        os.replace(place, self.options.save)


def stop(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    for name in HIDDEN:
        if name in os.environ:
            note(f"{name}={os.environ[name]} of the environment is not passed on to the peer")
    sys.exit(Comparison(options()).run())

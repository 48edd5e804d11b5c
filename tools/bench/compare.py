#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py CASE [OPTION of ./bench CASE ...]: runs ./bench in turns with the fastest other software for the same work,
checks that both compute the same, and prints both with the ratio of their medians (above 1: ours is faster).
  tokenizer   beside Hugging Face's tokenizers          attention   beside PyTorch's scaled_dot_product_attention
  train       beside PyTorch                            decode      UniLM beside generate of Hugging Face's transformers
Needs Python 3. What is measured beside ours is imported by the Python of --peer alone; where it has none, ours is
measured alone."""
import argparse
import json
import os
import signal
import subprocess
import sys
from textwrap import fill

sys.dont_write_bytecode = True

from rivals import HERE, HIDDEN, VARIANTS, Peer, PeerError, Rival, progress, rivals, send  # noqa: E402

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Comparison:
    def __init__(self, chosen):
        self.options, self.all, self.rivals, self.children, self.told = chosen, {}, [], {}, set()

    def run(self):
        """The exit status."""
        options = self.options
        bench = subprocess.Popen(
            [options.bench, options.case, *options.words, "--turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        stopped = False
        try:
            for message in map(json.loads, bench.stdout):
                getattr(self, message["say"])(message)
                if message["say"] in ("work", "turn"):
                    send(bench.stdin, None)
        except KeyboardInterrupt:
            stopped = True
            note("stopped as asked; the rows that are there are whole")
        finally:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)  # what ends is ending
            self.end_rivals()
            for child in self.children.values():
                child.end()
            bench.communicate()  # it ends: nobody takes turns with it any more
        if self.all:
            self.save(not stopped and bench.returncode == 0)
            if options.json:
                print(json.dumps(self.all, indent=2))
        return bench.returncode

    def child(self, script, environment, keep):
        """A new process, or the one that is kept for the same."""
        key = (script, *environment.items())
        if not keep:
            return Peer(self.options.peer, script, environment)
        if key not in self.children or self.children[key].said.closed:
            self.children[key] = Peer(self.options.peer, script, environment)
        return self.children[key]

    def head(self, message):
        self.all = message["json"]
        self.say(message["text"] + "\n" + columns("", "ms", "range", "a second", "", "ratio"))

    def work(self, about):
        self.end_rivals()
        device = "cuda" if "driver" in self.all else "cpu"
        about = {"threads": self.all["machine"]["threads"], "device": device, **about}
        del about["say"]
        for rival in rivals(self.options.case, about):
            try:
                self.rivals.append(Rival(self, about, *rival))
            except PeerError as error:
                why = f"{error}; ours is measured alone (--peer PYTHON names another)"
                if self.once(why):
                    note(why)

    def turn(self, _):
        for rival in list(self.rivals):
            progress(f"{rival.name}'s turn")
            try:
                rival.turn()
            except PeerError as error:
                note(error)
                self.rivals.remove(rival)

    def row(self, message):
        row, text = message["row"], message["lines"]
        for rival in self.rivals:
            theirs = {**rival.found, "seconds": spread(rival.runs), "runs": rival.runs}
            theirs["ratio"] = theirs["seconds"]["median"] / row["seconds"]["median"]
            row.setdefault("peers", {})[rival.name] = theirs
            text += line(rival.name, row, theirs) + said(theirs)
            if self.once(theirs["version"]):
                text += f"    {theirs['version']}\n"
            if not theirs["agrees"]:
                note(f"WARNING: {rival.name} does NOT compute the same as ours: {row['name']}: {theirs['said']}")
        self.all["rows"].append(row)
        self.say(text + message["more"])
        self.save(False)
        self.end_rivals()

    def once(self, text):
        new = text not in self.told
        self.told.add(text)
        return new

    def end_rivals(self):
        for rival in self.rivals:
            rival.end()
        self.rivals = []

    def say(self, text):
        progress("")
        if not self.options.json:
            print(text, end="", flush=True)

    def save(self, complete):
        self.all["complete"] = complete
        if self.options.save:
            with open(self.options.save + ".new", "w") as file:
                json.dump(self.all, file, indent=2)
            os.replace(self.options.save + ".new", self.options.save)


def columns(name, ms, between, rate, unit, ratio):
    return f"{name:<25}{ms:>9}{between:>18}{rate:>9} {unit:<12}{ratio:>6}".rstrip() + "\n"


def line(name, row, theirs):
    """As ./bench writes its own."""
    s = theirs["seconds"]
    between = f"{figures(1e3 * s['least'])} - {figures(1e3 * s['most'])}"
    rate = figures(row["amount"] / s["median"])
    return columns("  " + name, figures(1e3 * s["median"]), between, rate, row["unit"] + "/s", figures(theirs["ratio"]))


def said(theirs):
    """How it was called, what it computed and held."""
    memory = f"; {theirs['peak_bytes'] / 2**20:.0f} MiB" if "peak_bytes" in theirs else ""
    return fill(theirs["said"] + memory, 80, initial_indent="    ", subsequent_indent="      ", break_long_words=False) + "\n"


def note(text):
    progress("")
    print(f"note: {text}", file=sys.stderr, flush=True)


def spread(values):
    v = sorted(values)
    return {"median": (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2, "least": v[0], "most": v[-1]}


def figures(value):
    """Three of them: 1234, 312, 31.2, 3.12, 0.03."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def options():
    parser = argparse.ArgumentParser(
        "compare.py", description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("case", choices=("tokenizer", "train", "attention", "decode"))
    add("--peer", metavar="PYTHON", default=sys.executable, help="that has the other software (default: this one)")
    add("--bench", metavar="FILE", default=os.path.join(HERE, "../../bench"), help="default: ./bench of this tree")
    add("--json", action="store_true", help="JSON, with each run")
    add("--save", metavar="FILE", help="the JSON into a file, too, which is written after each row")
    add("--variants", metavar="NAME,...", default=",".join(VARIANTS), help="train: the fastest of these stands beside "
        "ours: %(default)s; compiling takes minutes a mark")
    found, found.words = parser.parse_known_args()
    found.variants = found.variants.split(",")
    if not os.path.exists(found.bench):
        sys.exit(f"error: there is no {found.bench}; `make bench` makes it")
    for variant in found.variants:
        if variant not in VARIANTS:
            print(f"error: --variants: there is no {variant}; there are {', '.join(VARIANTS)}", file=sys.stderr)
            sys.exit(2)
    return found


def stop(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in SIGNALS:
        signal.signal(number, stop)
    for name in HIDDEN:
        if name in os.environ:
            note(f"{name}={os.environ[name]} of the environment is not passed on to the peer")
    sys.exit(Comparison(options()).run())

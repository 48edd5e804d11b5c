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
import tempfile
from textwrap import fill

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
# They make OpenBLAS slower than it is, and a comparison with it unfair.
HIDDEN = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
# glibc keeps memory and does not give it back to the system, so that a step costs no page faults.
KEPT = {
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}
VARIANTS = ("eager", "eager-sdpa", "compiled", "compiled-sdpa")  # of a model in PyTorch


class PeerError(Exception):
    """It did not start, ended, or said that something is wrong."""


class Peer:
    """`python script`, with these variables changed; told and answering in lines of JSON. It ends with compare.py."""

    def __init__(self, python, script, environment):
        self.python, self.said = python, tempfile.TemporaryFile()
        variables = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        try:  # in a session of its own: Ctrl-C is for compare.py, which then ends it
            self.child = subprocess.Popen(
                [python, os.path.join(HERE, script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                env={**variables, **environment}, start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"the peer {python} does not start: {error.strerror}") from None

    def ask(self, do, **request):
        """The answer. After a PeerError the child has ended."""
        send(self.child.stdin, {"do": do, **request})
        answer = self.child.stdout.readline()
        try:
            found = json.loads(answer)
        except ValueError:
            self.fail(f"answered {answer[:60]}, which is no JSON" if answer else f'ended at "{do}"')
        if "error" in found:
            self.fail(f"cannot {do}: {found['error']}")
        return found

    def fail(self, what):
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").split("\n")
        self.end()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise PeerError(f"the peer {self.python} {what}" + (f"; it said: {last}" if last else ""))

    def end(self):
        """With the compilers it may have started."""
        if self.child.returncode is None:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.communicate()
        self.said.close()


def send(stream, value):
    try:
        stream.write(json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n")
        stream.flush()
    except OSError:
        pass  # it has ended: who reads its answer learns why


def rivals(case, about):
    """What stands beside this work: name, script, variables, what it is asked besides, its variants."""
    threads = about["threads"]
    environment = {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    if case == "tokenizer":  # the library fixes its threads when it starts
        environment = {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false", "RAYON_NUM_THREADS": str(threads)}
        return [("tokenizers", "tokenizer_peer.py", environment, {}, None)]
    if case == "attention":
        return [("PyTorch", "attention_peer.py", environment, {}, None)]
    if case == "decode":
        return [("generate", "decode_peer.py", environment, {}, None)] if "written" in about else []
    environment.update(KEPT if about["device"] == "cpu" else {})
    return [(f"PyTorch, {form}", "train_peer.py", environment, {"form": form}, VARIANTS) for form in about["forms"]]


class Rival:
    """One other program beside one row of ours."""

    def __init__(self, comparison, about, name, script, environment, more, variants):
        self.name, self.runs, best = name, [], None
        if variants:
            variants = [variant for variant in variants if variant in comparison.options.variants]
        for variant in variants or [None]:
            progress(f"starting {name} {variant or ''}")
            try:
                child = comparison.child(script, environment, keep=not variants)
                found = child.ask("work", **about, **more, variant=variant)
                seconds = child.ask("turn")["seconds"] if variants and len(variants) > 1 else 0
            except PeerError as error:
                why = error
                continue
            if best is None or seconds < best[0]:
                slower, best = best and best[1], (seconds, child, found)
            else:
                slower = child
            if slower:
                slower.end()
        if best is None:
            raise why
        _, self.child, self.found = best
        self.kept = not variants

    def turn(self):
        answer = self.child.ask("turn")
        self.runs.append(answer.pop("seconds"))
        self.found.update(answer)

    def end(self):
        if not self.kept:
            self.child.end()


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


def progress(text):
    """One line on a terminal, which the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r{'':79}\r{text[:79]}", end="", file=sys.stderr, flush=True)


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
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    for name in HIDDEN:
        if name in os.environ:
            note(f"{name}={os.environ[name]} of the environment is not passed on to the peer")
    sys.exit(Comparison(options()).run())

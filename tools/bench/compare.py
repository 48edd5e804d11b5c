#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py CASE [OPTION of ./bench CASE ...]: runs ./bench in turns with the fastest other software for the same work,
checks that both compute the same, and prints both with the ratio of their medians (above 1: ours is faster).
  tokenizer   beside Hugging Face's tokenizers          attention   beside PyTorch's scaled_dot_product_attention
  train       beside PyTorch                            decode      UniLM beside generate of Hugging Face's transformers
Needs Python 3. Only the Python of --peer imports the other software; if it is not installed there, only this engine is
measured. Requests and answers are lines of JSON (tools/bench/bench.h, peer.serve)."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {
    "tokenizer": ("tokenizers", "tokenizer_peer.py"),
    "train": ("PyTorch", "train_peer.py"),
    "attention": ("PyTorch", "attention_peer.py"),
    "decode": ("generate", "decode_peer.py"),
}
VARIANTS = ("eager", "eager-sdpa", "compiled", "compiled-sdpa")  # ways to run a model in PyTorch
# These variables are removed from the peer's environment: they can slow OpenBLAS down, which would be unfair.
HIDDEN = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
# These variables are added to the peer's environment. The first three make glibc keep freed memory, so that training
# steps cause no page faults.
GIVEN = {
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
    "HF_HUB_OFFLINE": "1",
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class PeerError(Exception):
    """The peer did not start, has ended, or has reported an error."""


class Peer:
    """A child process `python script` with the given number of threads. Requests and answers are lines of JSON. The
    child ends when compare.py ends."""

    def __init__(self, python, script, threads):
        self.python, self.said = python, tempfile.TemporaryFile()
        variables = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        some = {"OMP_NUM_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
        some["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
        try:  # the child has its own session, so that only compare.py receives Ctrl-C; compare.py then ends the child
            self.child = subprocess.Popen(
                [python, os.path.join(HERE, script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                env={**variables, **GIVEN, **some}, start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"the peer {python} does not start: {error.strerror}") from None

    def ask(self, do, **request):
        """Sends a request and returns the answer. After a PeerError, the child process has ended."""
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
        """Ends the child process and all processes that it has started, such as compilers."""
        if self.child.returncode is None:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.communicate()
        self.said.close()


class Comparison:
    def __init__(self, options):
        self.options, self.peer, self.kept, self.told = options, None, {}, set()

    def run(self):
        """Runs ./bench, answers its requests, and returns its exit status."""
        command = [self.options.bench, self.options.case, *self.options.words, "--turns"]
        bench = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            for message in map(json.loads, bench.stdout):
                if not show(message):
                    send(bench.stdin, self.answer(message))
        except KeyboardInterrupt:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)  # already ending: ignore further signals
        self.end_peers()
        bench.stdin.close()  # after Ctrl-C, this makes ./bench end as well
        for message in map(json.loads, bench.stdout):
            show(message)
        return bench.wait()

    def answer(self, message):
        """Returns the answer of the peer to a request of ./bench; None if there is no peer."""
        try:
            if message.pop("say") == "turn":
                return self.peer and self.peer.ask("turn")
            self.peer = None
            self.peer, found = self.fastest(message) if self.options.case == "train" else self.same(message)
            return {"name": PEERS[self.options.case][0], **found}
        except PeerError as error:
            self.peer = None
            if str(error) not in self.told:
                note(f"{error}; only this engine is measured (--peer PYTHON names another)")
            self.told.add(str(error))

    def start(self, request):
        return Peer(self.options.peer, PEERS[self.options.case][1], request["threads"])

    def same(self, request):
        """Returns the peer for this number of threads and its answer. The peer is kept for later requests."""
        threads = request["threads"]
        if threads not in self.kept or self.kept[threads].said.closed:
            self.kept[threads] = self.start(request)
        return self.kept[threads], self.kept[threads].ask("work", **request)

    def fastest(self, request):
        """Returns the peer with the fastest variant, and its answer. Each variant has its own process, so that its
        memory can be measured."""
        self.end_peers()
        best = None
        for variant in self.options.variants:
            try:
                peer = self.start(request)
                found = peer.ask("work", **request, variant=variant)
                seconds = peer.ask("turn")["seconds"] if len(self.options.variants) > 1 else 0
            except PeerError as error:
                why = error
                continue
            if best and best[0] <= seconds:
                peer.end()
                continue
            self.end_peers()
            best = seconds, peer, found
            self.kept = {variant: peer}
        if not best:
            raise why
        return best[1:]

    def end_peers(self):
        for peer in self.kept.values():
            peer.end()
        self.kept = {}


def show(message):
    shown = message["say"] == "show"
    if shown:
        print(message["text"], end="", flush=True)
    return shown


def send(stream, value):
    try:
        stream.write(json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n")
        stream.flush()
    except OSError:
        pass  # the process has ended, which is reported when its answer is read


def note(text):
    print(f"note: {text}", file=sys.stderr, flush=True)


def options():
    parser = argparse.ArgumentParser(
        "compare.py", description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("case", choices=PEERS)
    add("--peer", metavar="PYTHON", default=sys.executable, help="a Python with the other software (default: this one)")
    add("--bench", metavar="FILE", default=os.path.join(HERE, "../../bench"), help="default: ./bench of this tree")
    add("--variants", metavar="NAME,...", default=",".join(VARIANTS), help="train: compare with the fastest of these: "
        "%(default)s; compiling takes minutes per mark")
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

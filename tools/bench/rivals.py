# SPDX-License-Identifier: MIT
"""Other software that is measured beside ours, in its own processes. Requests and answers: lines of JSON (peer.serve)."""
import json
import os
import signal
import subprocess
import sys
import tempfile

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


def progress(text):
    """One line on a terminal, which the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r{'':79}\r{text[:79]}", end="", file=sys.stderr, flush=True)


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

# SPDX-License-Identifier: MIT
"""The children of compare.py: ./bench, which measures ours, and Pythons that measure other software. All of them are told
and answer in lines of JSON. Also how figures are shown."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 900  # seconds for an answer: compiling a model takes minutes on a slow machine
# They make OpenBLAS slower than it is, and a comparison with it unfair.
HIDDEN = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


class PeerError(Exception):
    """It did not start, ended, took too long, or said that something is wrong."""


class Peer:
    """`python script`, with these variables changed. It ends with compare.py."""

    def __init__(self, python, script, environment):
        self.python, self.late, self.said = python, False, tempfile.TemporaryFile()
        variables = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        command = [python, os.path.join(HERE, script)]
        try:  # in a session of its own: Ctrl-C is for compare.py, which then ends it
            self.child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                env={**variables, **environment}, start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"the peer {python} does not start: {error.strerror}") from None

    def ask(self, do, patience=PATIENCE, /, **request):
        """The answer, at the latest after so many seconds. After a PeerError the child has ended."""
        timer = threading.Timer(patience, self.give_up)
        timer.start()
        try:
            send(self.child.stdin, {"do": do, **request})
            answer = self.child.stdout.readline()
        finally:
            timer.cancel()
        if self.late:
            self.fail(f'gave no answer to "{do}" in {patience} s')
        if not answer:
            self.fail(f'ended at "{do}"')
        try:
            found = json.loads(answer)
        except ValueError:
            self.fail(f"answered {answer[:60]}, which is no JSON")
        if "error" in found:
            self.fail(f"cannot {do}: {found['error']}")
        return found

    def give_up(self):
        self.late = True
        self.kill()

    def kill(self):
        """With the compilers it may have started."""
        if self.child.returncode is None:
            os.killpg(self.child.pid, signal.SIGKILL)

    def fail(self, what):
        self.kill()
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").split("\n")
        self.end()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise PeerError(f"the peer {self.python} {what}" + (f"; it said: {last}" if last else ""))

    def end(self):
        self.kill()
        self.child.communicate()
        self.said.close()


class Bench:
    """./bench, whose messages it yields; one that says start or turn waits for go_on()."""

    def __init__(self, program, words):
        self.child = subprocess.Popen([program, *words, "--turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __iter__(self):
        return map(json.loads, self.child.stdout)

    def go_on(self, answer=None):
        send(self.child.stdin, answer)

    def end(self):
        """Its exit status; told to stop where it still runs."""
        self.child.communicate()
        return self.child.returncode


def send(stream, value):
    line = "" if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))
    try:
        stream.write(line.encode() + b"\n")
        stream.flush()
    except OSError:
        pass  # it has ended: who reads its answer learns why


def note(text):
    progress("")
    print(f"note: {text}", file=sys.stderr, flush=True)


def progress(line):
    """One line on a terminal, which the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r{'':79}\r{line[:79]}", end="", file=sys.stderr, flush=True)


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def spread(values):
    return {"median": median(values), "least": min(values), "most": max(values)}


def figures(value):
    """Three of them: 1234, 312, 31.2, 3.12, 0.03."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"

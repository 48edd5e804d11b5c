# SPDX-License-Identifier: MIT
"""interface.py FOLDER: tests, with the run FOLDER/lm, what a program in Python does around its calls: threads that
still run at the end, forks, Ctrl-C, copies and wrong arguments. Prints ok."""
import copy
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np

sys.path.insert(0, "python")
import masquerade

warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork() in a process with threads, from Python 3.12 on
folder = sys.argv[1]
run = masquerade.Run.open(f"{folder}/lm")
small = dict(layers=2, width=16, heads=2, inner=32, batch_tokens=200, warmup=5, vocabulary=120, max_length=20)


def expect(kind, work, part=""):
    try:
        result = work()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"expected {kind.__name__} {part}, found {result!r}")


def train(name, **options):
    return masquerade.train("lm", small, data=f"{folder}/lines", minutes=0, out=f"{folder}/{name}", steps=3, **options)


# The interpreter ends while two threads are in a call.
program = f"""
import sys, threading, time
sys.path.insert(0, "python")
import masquerade
run = masquerade.Run.open("{folder}/lm")
for _ in range(2):
    threading.Thread(target=lambda: run.generate(count=8000, temperature=1), daemon=True).start()
time.sleep(0.5)
"""
for _ in range(2):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended


def forked(expected):
    """Returns whether a child of fork() generates what is expected within 30 seconds; None: the call is refused."""
    child = os.fork()
    if child == 0:
        try:
            found = run.generate(count=3, temperature=1)
        except masquerade.Misuse as error:
            found = None if "was forked while another thread was in a call" in str(error) else str(error)
        os._exit(0 if found == expected else 1)
    for _ in range(3000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


usual = run.generate(count=3, temperature=1)
assert forked(usual), "a child of fork() cannot generate"
in_callback = []
train("forking", progress=lambda step: in_callback.append(forked(usual)))
assert in_callback == [True] * 3, "a child of fork() in a callback cannot generate"
entered, leave = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: train("held", progress=lambda step: entered.set() or not leave.wait(60)))
other.start()
assert entered.wait(60)
assert forked(None), "a child of fork() during a call of another thread is not refused"
leave.set()
other.join()
assert forked(usual)

# Ctrl-C while the function of on_log() runs.
shutil.copytree(f"{folder}/lm", f"{folder}/unlinked", symlinks=True)
os.remove(f"{folder}/unlinked/latest")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs with SIGINT ignored
masquerade.on_log(lambda line: os.kill(os.getpid(), signal.SIGINT))
expect(KeyboardInterrupt, lambda: masquerade.Run.open(f"{folder}/unlinked"))
masquerade.on_log(None)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

# Copies would close the run of the original.
for opened in run, run.tokenizer:
    for work in copy.copy, copy.deepcopy, pickle.dumps:
        expect(TypeError, lambda: work(opened), "cannot be copied or pickled; open it again")
assert run.generate(count=3, temperature=1) == usual
assert run.tokenizer is run.tokenizer
with run.tokenizer as tokenizer:
    ids = tokenizer.encode("a red cup").tolist()
assert run.tokenizer.encode("a red cup").tolist() == ids and run.tokenizer is not tokenizer

# Failures around the callback of training, and words that are none.
expect(ValueError, lambda: train("undecided", progress=lambda step: np.zeros(2)))
expect(masquerade.Misuse, lambda: train("uncallable", progress=3), "expected a function or None, found 3")
assert not os.path.exists(f"{folder}/uncallable")
for wrong in (lambda: run.generate(count=1, forbid="\ud800"), lambda: run.generate(count=1, **{"\ud800": 1}),
              lambda: masquerade.Run.open("a\ud800"), lambda: masquerade.Run.open(3),
              lambda: masquerade.Tokenizer.open(None)):
    expect(masquerade.Misuse, wrong, "cannot be a path or an option")
print("ok")

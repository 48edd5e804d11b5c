# SPDX-License-Identifier: MIT
"""Shared by the *_peer.py programs, which run other software for compare.py: the exchange of requests and answers, and
timing as in ./bench."""
import ctypes
import json
import os
import platform
import signal
import sys
import time


def serve(kind):
    """Answers each line of JSON on standard input with one line on standard output. Ends when its parent process ends.
      {"do": "work", ...}  kind().work(request) prepares the work. The answer has "version", "said" (how the software is
                           called and what it computed) and "agrees" (whether the results equal those of ./bench).
      {"do": "turn"}       kind().turn() measures. The answer has "seconds", the time of one call.
    If something fails, the answer is {"error": WHY}."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # other output goes to standard error, so that it is not read as an answer
    bench = None
    for line in iter(sys.stdin.readline, ""):
        try:
            request = json.loads(line)
            bench = bench or kind()
            found = bench.work(request) if request["do"] == "work" else bench.turn()
        except BaseException as error:
            found = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
        print(json.dumps(found), file=answers, flush=True)


def prepare(torch, request):
    """Checks that a requested GPU exists, sets the number of threads, and keeps products of f32 in f32. Returns a
    function that waits for the device."""
    if request["device"] == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} finds no GPU")
    torch.set_num_threads(request["threads"])
    torch.set_float32_matmul_precision("highest")
    return torch.cuda.synchronize if request["device"] == "cuda" else lambda: None


def seconds_of(work, budget=0.2, wait=lambda: None, together=1):
    """Returns the mean seconds of one call of work(), over as many calls as fill `budget` seconds. Calls wait() after
    every `together` calls."""
    wait()
    start, calls, passed = time.perf_counter(), 0, 0
    while calls == 0 or passed < budget:
        for _ in range(together):
            work()
        wait()
        calls += together
        passed = time.perf_counter() - start
    return passed / calls


def version(*modules):
    return ", ".join([f"{m.__name__} {m.__version__}" for m in modules] + [f"Python {platform.python_version()}"])

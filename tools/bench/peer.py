# SPDX-License-Identifier: MIT
"""The process that other software runs in, how it answers compare.py, and how it is timed: as ours is."""
import ctypes
import json
import os
import platform
import signal
import sys
import time


def serve(kind):
    """A line of JSON on standard input is answered by one on standard output. {"do": "work", ...}: kind().work(request) makes
    ready, and answers with "version", "said" (how it is called, what it computed) and "agrees" (with ours). {"do": "turn"}:
    kind().turn() answers with "seconds" of a call. What goes wrong is {"error": WHY}. It ends with its parent."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer
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
    """What every measurement asks of PyTorch: a GPU where one is named, so many threads, products in f32 as f32. How the
    device is waited for."""
    if request["device"] == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} finds no GPU")
    torch.set_num_threads(request["threads"])
    torch.set_float32_matmul_precision("highest")
    return torch.cuda.synchronize if request["device"] == "cuda" else lambda: None


def seconds_of(work, budget=0.2, wait=lambda: None, together=1):
    """Of one call: the mean of as many as fill the budget; a GPU is waited for after several."""
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

# SPDX-License-Identifier: MIT
"""The process that a peer runs in, how it answers, and what is asked of PyTorch everywhere."""
import ctypes
import json
import os
import signal
import sys
import time


def serve(start):
    """A line of JSON on standard input is answered by one on standard output: {"do": "start", ...} by start(request), which
    gives an object and the answer; {"do": NAME, ...} by the object's method of that name. What goes wrong is {"error": WHY}.
    The process ends with the one that started it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer
    bench = None
    for line in iter(sys.stdin.readline, ""):
        try:
            request = json.loads(line)
            if request["do"] == "start":
                bench, found = start(request)
            else:
                found = getattr(bench, request["do"])(request)
        except BaseException as e:
            found = {"error": said(e)}
        print(json.dumps(found), file=answers, flush=True)


def prepare(torch, request):
    """What every measurement asks of PyTorch: a GPU where one is named, so many threads, products in f32 as f32."""
    if request["device"] == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} finds no GPU")
    torch.set_num_threads(request["threads"])
    torch.set_float32_matmul_precision("highest")


def mean_seconds(work, budget, wait=lambda: None, together=1):
    """As ours is taken: one call that is not counted; a GPU is waited for after several."""
    work()
    wait()
    start, times, spent = time.perf_counter(), 0, 0
    while times == 0 or spent < budget:
        for _ in range(together):
            work()
        wait()
        times += together
        spent = time.perf_counter() - start
    return spent / times


def first_number(lines, key):
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)


def forget_compiled():
    """What was compiled for another variant; and as many forms of a layer as there are, not the default 8."""
    from torch import _dynamo

    _dynamo.reset()
    _dynamo.config.recompile_limit = 64


def said(error):
    return f"{type(error).__name__}: {error}".split("\n")[0]

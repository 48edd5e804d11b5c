#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps in PyTorch, measured for ./bench train. A line of JSON on standard input is answered by a line of
JSON on standard output:
  {"do": "start", "allocator": NAME, "threads": N, "sizes": {}, "batch": {}, "rule": {}, "weights": {}}
                                        checks the allocator, imports torch, tells the version and what it can
  {"do": "check", "form": F, "variant": V}        loss, norm of the gradient, and loss after one update, without
                                        dropout, from the weights and the noise that were given
  {"do": "try", "form": F, "variant": V, "limit": S}   seconds of a step, or "failed"; gives up on one that takes
                                        longer than S
  {"do": "build", "form": F, "variant": V}        keeps the model for `run`; the loss of the first step
  {"do": "run", "seconds": S}           steps for so long: seconds and page faults of each
  {"do": "products", "products": [[m, n, k, order, type, add], ...], "seconds": S}   the mean of each, in runs of so long
  {"do": "memory"}                      the most that was resident, in bytes
A variant is {"precision", "mode", "attention", "optimiser", "loss"}; see Training and train_peer_models.py."""
import contextlib
import inspect
import json
import os
import platform
import resource
import sys
import time

sys.dont_write_bytecode = True

OUR_NAMES = {".kind.": ".type.", ".into.": ".in."}  # of parameters; a module cannot have ours


def first_number(lines, key):
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)


def allocator():
    """The one that is in this process, by its library."""
    with open("/proc/self/maps") as maps:
        text = maps.read()
    return next((name for name in ("jemalloc", "tcmalloc") if name in text), "glibc")


class Training:
    """A model in one form and variant, and its full training step."""

    def __init__(self, bench, form, variant):
        self.bench, self.variant, self.rule = bench, variant, bench.rule
        torch.manual_seed(1)
        self.form = {"bert": models.Bert, "split": models.Split, "joint": models.Joint}[form](bench.sizes, bench.batch)
        self.model = models.Model(bench.sizes, variant)
        bench.load(self.model)
        if variant["precision"] == "bf16":
            self.model.to(torch.bfloat16)
        self.loss = self.form.loss
        self.parameters = list(self.model.parameters())
        groups = [
            {"params": [p for p in self.parameters if p.dim() > 1], "weight_decay": self.rule["decay"]},
            {"params": [p for p in self.parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        kind = variant["optimiser"]
        choice = {kind: True} if kind in ("fused", "foreach") else {"foreach": False}
        self.optimiser = torch.optim.AdamW(
            groups, self.rule["rate"], (self.rule["beta1"], self.rule["beta2"]), self.rule["eps"], **choice
        )
        clip = torch.nn.utils.clip_grad_norm_
        several = "foreach" in inspect.signature(clip).parameters and kind != "single"
        self.clip = (lambda p, m: clip(p, m, foreach=True)) if several else clip
        if variant["mode"] != "eager":
            forget_compiled()
        if variant["mode"] == "compiled":
            self.loss = torch.compile(self.form.loss, dynamic=False)
        if variant["mode"] == "layers compiled":
            for layer in (self.model.embedding, self.model.head, *self.model.layer):
                layer.compile(dynamic=False)

    def update(self):
        norm = self.clip(self.parameters, self.rule["clip"])
        self.optimiser.step()
        return norm

    def arithmetic(self):
        if self.variant["precision"] == "autocast":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def step(self, noise=None):
        noise = noise or self.form.noise()
        with self.arithmetic():
            loss = self.loss(self.model, noise)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.norm = self.update()
        return loss.item()


class Bench:
    def __init__(self, request):
        self.sizes, self.batch, self.rule = request["sizes"], request["batch"], request["rule"]
        self.weights = request["weights"]
        self.training = None

    def load(self, model):
        """Our weights, found by our names."""
        with open(self.weights["file"], "rb") as file, torch.no_grad():

            def read(name, to):
                file.seek(self.weights["tensors"][name])
                data = bytearray(file.read(4 * to.numel()))
                to.copy_(torch.frombuffer(data, dtype=torch.float32).view(to.shape))

            for name, p in model.named_parameters():
                for theirs, ours in OUR_NAMES.items():
                    name = name.replace(theirs, ours)
                if "joined" in name:
                    width = self.sizes["width"]
                    read(name.replace("joined", "query"), p[:width])
                    read(name.replace("joined", "key_value"), p[width:])
                else:
                    read(name, p)

    def noise(self):
        given = self.batch.get("noise")
        if not given:
            return None
        w, e = torch.tensor(given["w"]), torch.tensor(given["e"])
        return w, e.view(*w.shape, -1)

    def check(self, request):
        training = Training(self, request["form"], request["variant"])
        training.model.dropout.on = False
        training.form.weigh_real()
        first = training.step(self.noise())
        norm = float(training.norm)
        with torch.no_grad(), training.arithmetic():
            second = training.form.loss(training.model, self.noise()).item()
        parameters = sum(p.numel() for p in training.parameters)
        return {"loss": first, "norm": norm, "next": second, "parameters": parameters}

    def attempt(self, request):
        limit = request.get("limit", float("inf"))
        try:
            training, times = Training(self, request["form"], request["variant"]), []
            start = time.perf_counter()
            training.step()
            first = time.perf_counter() - start
            compiled = request["variant"]["mode"] != "eager"
            if first > 4 * limit and not compiled:
                return {"seconds": first}
            while len(times) < 3 or (len(times) < 20 and sum(times) < 1):
                start = time.perf_counter()
                training.step()
                times.append(time.perf_counter() - start)
                if times[-1] > limit and len(times) > compiled:
                    break
            return {"seconds": min(times), "first": first}
        except Exception as e:
            return {"failed": said(e)}

    def build(self, request):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the most that was resident is counted from here on
        self.training = Training(self, request["form"], request["variant"])
        first = self.training.step(self.noise())
        return {"loss": first}

    def run(self, request):
        self.training.step()  # meets the caches as another program left them
        faults, start, steps = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter(), 0
        while steps < 2 or time.perf_counter() - start < request["seconds"]:
            loss = self.training.step()
            steps += 1
        passed = time.perf_counter() - start
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        return {"seconds": passed / steps, "steps": steps, "faults": faults / steps, "loss": loss}

    def products(self, request):
        found = []
        for m, n, k, order, kind, add in request["products"]:
            dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
            a = torch.rand(k, m, dtype=dtype).t() if order == "TN" else torch.rand(m, k, dtype=dtype)
            b = torch.rand(n, k, dtype=dtype).t() if order == "NT" else torch.rand(k, n, dtype=dtype)
            c, times, spent = torch.zeros(m, n, dtype=dtype), -1, 0  # the first is not counted
            while times < 1 or spent < request["seconds"]:
                torch.addmm(c, a, b, out=c) if add else torch.mm(a, b, out=c)
                times += 1
                start = time.perf_counter() if times == 0 else start
                spent = time.perf_counter() - start
            found.append(spent / times)
        return {"seconds": found}

    def memory(self, request):
        with open("/proc/self/status") as status:
            return {"bytes": 1024 * first_number(status, "VmHWM:")}


def forget_compiled():
    """What was compiled for another variant; and as many forms of a layer as there are, not the default 8."""
    from torch import _dynamo

    _dynamo.reset()
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(_dynamo.config, name):
            setattr(_dynamo.config, name, 64)


def said(error):
    return f"{type(error).__name__}: {error}".split("\n")[0]


def slow_blas():
    """Whether matrix products are those of the reference BLAS, as Debian's PyTorch has them without another."""
    with open("/proc/self/maps") as maps:
        return any("/blas/libblas.so" in os.path.realpath(line.split()[-1]) for line in maps if "libblas" in line)


def features():
    try:
        torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], fused=True)
        fused = True
    except (RuntimeError, TypeError, ValueError):
        fused = False
    return {
        "fused": fused,
        "sdpa": hasattr(torch.nn.functional, "scaled_dot_product_attention"),
        "chunked_loss": hasattr(torch.nn, "LinearCrossEntropyOptions"),
        "compile": hasattr(torch.nn.Module, "compile"),
    }


def start(request):
    global torch, models
    if allocator() != request["allocator"]:
        raise RuntimeError(f"{request['allocator']} is not here")
    import torch
    import train_peer_models as models

    torch.set_num_threads(request["threads"])
    versions = {"version": torch.__version__, "python": platform.python_version()}
    return Bench(request), dict(versions, features=features(), slow_blas=slow_blas())


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer
    bench = None
    for line in iter(sys.stdin.readline, ""):
        try:
            request = json.loads(line)
            if request["do"] == "start":
                bench, answer = start(request)
            else:
                do = {"check": bench.check, "try": bench.attempt, "build": bench.build, "run": bench.run}
                do.update({"products": bench.products, "memory": bench.memory})
                answer = do[request["do"]](request)
        except BaseException as e:
            answer = {"error": said(e)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()

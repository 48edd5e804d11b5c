#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps in PyTorch, measured for compare.py train; see peer_system.serve. It is asked:
  {"do": "start", "device": "cpu" or "cuda", "threads": N, "sizes": {}, "batch": {}, "rule": {},
   "weights": {}}                       imports torch, tells the version and what it can
  {"do": "check", "form": F, "variant": V}        loss, norm of the gradient, and loss after one update, without
                                        dropout, from the weights and the noise that were given
  {"do": "attempt", "form": F, "variant": V, "limit": S}   seconds of a step, or "failed"; gives up on one that takes
                                        longer than S
  {"do": "build", "form": F, "variant": V}        keeps the model for `run`; the loss of the first step
  {"do": "run", "seconds": S}           steps for so long: seconds and page faults of each
  {"do": "products", "products": [[m, n, k, order, type, add], ...], "seconds": S}   the mean of each, in runs of so long
  {"do": "memory"}                      the most that was resident, or held in the GPU's memory, in bytes
A GPU is waited for before a clock is read. f32 is multiplied as f32 there, never as TF32, as ours is.
A variant is {"precision", "mode", "attention", "optimiser", "loss"}; see Training and train_peer_models.py."""
import contextlib
import gc
import platform
import resource
import sys
import time

sys.dont_write_bytecode = True

import peer_system as system  # noqa: E402

OUR_NAMES = {".kind.": ".type.", ".into.": ".in."}  # of parameters; a module cannot have ours


class Training:
    """A model in one form and variant, and its full training step."""

    def __init__(self, bench, form, variant):
        self.bench, self.variant, self.rule = bench, variant, bench.rule
        torch.manual_seed(1)
        with bench.there():
            kind = {"bert": models.Bert, "split": models.Split, "joint": models.Joint}[form]
            self.form = kind(bench.sizes, bench.batch)
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
        self.foreach = kind != "single"
        if variant["mode"] != "eager":
            system.forget_compiled()
        if variant["mode"] == "compiled":
            self.loss = torch.compile(self.form.loss, dynamic=False)
        if variant["mode"] == "layers compiled":
            for layer in (self.model.embedding, self.model.head, *self.model.layer):
                layer.compile(dynamic=False)

    def update(self):
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.rule["clip"], foreach=self.foreach)
        self.optimiser.step()
        return norm

    def arithmetic(self):
        if self.variant["precision"] == "autocast":
            return torch.autocast(self.bench.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def step(self, noise=None):
        noise = noise or self.form.noise()
        with self.arithmetic():
            loss = self.loss(self.model, noise)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.norm = self.update()
        value = loss.item()
        self.bench.wait()
        return value


class Bench:
    def __init__(self, request):
        self.sizes, self.batch, self.rule = request["sizes"], request["batch"], request["rule"]
        self.weights = request["weights"]
        self.training = None
        self.device = torch.device(request["device"])
        self.on_gpu = self.device.type == "cuda"

    def there(self):
        """Tensors made within it lie on the device."""
        return self.device if self.on_gpu else contextlib.nullcontext()

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

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
        w, e = (torch.tensor(given[name], device=self.device) for name in ("w", "e"))
        return w, e.view(*w.shape, -1)

    def check(self, request):
        training = Training(self, request["form"], request["variant"])
        training.model.dropout[:] = 0.0, 0.0
        training.form.weigh_real()
        first = training.step(self.noise())
        norm = float(training.norm)
        with torch.no_grad(), training.arithmetic():
            second = training.form.loss(training.model, self.noise()).item()
        parameters = sum(p.numel() for p in training.parameters)
        return {"loss": first, "norm": norm, "next": second, "parameters": parameters}

    def attempt(self, request):
        limit = request["limit"] or float("inf")
        if self.on_gpu:  # what the last one left
            gc.collect()
            torch.cuda.empty_cache()
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
            return {"failed": system.said(e)}

    def build(self, request):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the most that was resident is counted from here on
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
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
            with self.there():
                a = torch.rand(k, m, dtype=dtype).t() if order == "TN" else torch.rand(m, k, dtype=dtype)
                b = torch.rand(n, k, dtype=dtype).t() if order == "NT" else torch.rand(k, n, dtype=dtype)
                c = torch.zeros(m, n, dtype=dtype)
            work = (lambda: torch.addmm(c, a, b, out=c)) if add else (lambda: torch.mm(a, b, out=c))
            found.append(system.mean_seconds(work, request["seconds"], self.wait, 8 if self.on_gpu else 1))
        return {"seconds": found}

    def memory(self, request):
        if self.on_gpu:
            return {"bytes": torch.cuda.max_memory_allocated()}
        with open("/proc/self/status") as status:
            return {"bytes": 1024 * system.first_number(status, "VmHWM:")}


def start(request):
    global torch, models
    import torch
    import train_peer_models as models

    system.prepare(torch, request)
    chunked = hasattr(torch.nn, "LinearCrossEntropyOptions")
    return Bench(request), {"version": f"{torch.__version__}, Python {platform.python_version()}", "chunked_loss": chunked}


if __name__ == "__main__":
    system.serve(start)

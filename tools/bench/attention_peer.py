#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scaled_dot_product_attention of PyTorch, measured for compare.py attention; see peer_system.serve. It is asked:
  {"do": "start", "device": "cpu" or "cuda", "threads": N}     imports torch, tells the version
  {"do": "run", "precision": "f32" or "bf16", "mask": NAME, "documents": B, "length": N, "heads": H, "size": D,
   "seconds": S}            the mean seconds of "forward" and of "both", forward and backward, in runs of so long; "y" and
                            "dq", the means of the absolute values of the output and of the queries' gradient"""
import platform
import sys

sys.dont_write_bytecode = True

import peer_system as system  # noqa: E402


class Bench:
    def __init__(self, request):
        self.device = request["device"]
        system.prepare(torch, request)

    def mean(self, work, budget):
        wait = (torch.cuda.synchronize, 8) if self.device == "cuda" else ()
        return system.mean_seconds(work, budget, *wait)

    def tensor(self, request, salt):
        b, n, h, d = (request[name] for name in ("documents", "length", "heads", "size"))
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[request["precision"]]
        numbers = ((37 * torch.arange(b * n * h * d) + 11 * salt) % 97).float() / 48 - 1
        return numbers.view(b, n, h, d).transpose(1, 2).contiguous().to(self.device, dtype)

    def run(self, request):
        q, k, v, dy = (self.tensor(request, salt) for salt in range(4))
        n, mask, causal = request["length"], None, request["mask"] == "causal"
        if request["mask"] == "prefix":
            place, half = torch.arange(n, device=self.device), n // 2
            mask = (place[None] < half) | ((place[None] <= place[:, None]) & (place[:, None] >= half))

        def forward():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, 0.0, causal)

        def both():
            return torch.autograd.grad(forward(), (q, k, v), dy)

        with torch.no_grad():
            seconds = {"forward": self.mean(forward, request["seconds"])}
            y = forward().float().abs().mean().item()
        for tensor in (q, k, v):
            tensor.requires_grad_(True)
        seconds["both"] = self.mean(both, request["seconds"])
        return dict(seconds, y=y, dq=both()[0].float().abs().mean().item())


def start(request):
    global torch
    import torch

    return Bench(request), {"version": f"PyTorch {torch.__version__}, Python {platform.python_version()}"}


if __name__ == "__main__":
    system.serve(start)

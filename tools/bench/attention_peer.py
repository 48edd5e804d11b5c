#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures PyTorch's scaled_dot_product_attention for compare.py attention. See peer.serve."""
import sys

sys.dont_write_bytecode = True

import peer  # noqa: E402


class Attention:
    def __init__(self):
        global torch
        import torch

    def tensor(self, request, salt):
        """Returns the input with this salt (q, keys, values or dy), by the formula of AttentionWork in
        tools/bench/attention.h."""
        b, n, h, d = (request[name] for name in ("documents", "length", "heads", "size"))
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[request["precision"]]
        numbers = ((37 * torch.arange(b * n * h * d) + 11 * salt) % 97).float() / 48 - 1
        return numbers.view(b, n, h, d).transpose(1, 2).contiguous().to(request["device"], dtype)

    def work(self, request):
        self.wait, self.request = peer.prepare(torch, request), request
        q, k, v, dy = (self.tensor(request, salt) for salt in range(4))
        n, mask, causal = request["length"], None, request["mask"] == "causal"
        if request["mask"] == "prefix":
            place, half = torch.arange(n, device=request["device"]), n // 2
            mask = (place[None] < half) | ((place[None] <= place[:, None]) & (place[:, None] >= half))

        def forward():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, 0.0, causal)

        def both():
            return torch.autograd.grad(forward(), (q, k, v), dy)

        for tensor in (q, k, v):
            tensor.requires_grad_(True)
        self.call = both if request["both_ways"] else torch.no_grad()(forward)
        theirs = {"y": forward().float().abs().mean().item(), "dq": both()[0].float().abs().mean().item()}
        ours, tolerance = request["check"], 2e-2 if request["precision"] == "bf16" else 1e-4
        return {
            "version": peer.version(torch),
            "said": ", ".join(f"mean |{name}| {ours[name]:.5f} {theirs[name]:.5f}" for name in theirs),
            "check": theirs,
            "agrees": all(abs(ours[name] - theirs[name]) <= tolerance * abs(theirs[name]) for name in theirs),
        }

    def turn(self):
        together = 8 if self.request["device"] == "cuda" else 1
        return {"seconds": peer.seconds_of(self.call, self.request["budget"], self.wait, together)}


if __name__ == "__main__":
    peer.serve(Attention)

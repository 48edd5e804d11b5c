#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures training steps in PyTorch for compare.py train. See peer.serve. Bert and Sentences are batches with a
loss(), the mean over the predicted tokens. Parameters have the same names and sizes as in the engine. A variant is
eager or compiled; attention is written out or, in variants "-sdpa", scaled_dot_product_attention. bf16 means autocast,
which keeps f32 weights as the engine does; f32 products on a GPU never use TF32."""
import math
import sys

sys.dont_write_bytecode = True

import peer  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

NOTHING = -1e9  # added to the score of a masked key


def drop(x, rate):
    return F.dropout(x, rate) if rate > 0 else x


def turned(x, turns):
    """Rotates the pairs (2i, 2i + 1) of every head. `turns` is (cosines, sines); both have shape (n, D/2)."""
    cosine, sine = turns
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cosine - b * sine, b * cosine + a * sine), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, sizes, dropout, sdpa):
        super().__init__()
        width = sizes["width"]
        self.heads, self.width, self.dropout, self.sdpa = sizes["heads"], width, dropout, sdpa
        self.joined = nn.Linear(width, 3 * width)  # query, key, value
        self.output = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, bias, turns, memory, first_only):
        """bias: None, "causal", or a tensor that is added to the scores. memory: None, or an extra key (B,C), which is
        put before the other keys, at position 0."""
        width, rows = self.width, x[:, :1] if first_only else x
        if first_only:
            query = F.linear(rows, self.joined.weight[:width], self.joined.bias[:width])
            key, value = F.linear(x, self.joined.weight[width:], self.joined.bias[width:]).split(width, -1)
        else:
            query, key, value = self.joined(x).split(width, -1)
        query, key, value = self.split(query), self.split(key), self.split(value)
        if turns is not None:
            here = (turns[0][:1], turns[1][:1]) if first_only else turns
            query, key = turned(query, here).to(value.dtype), turned(key, turns).to(value.dtype)
        if memory is not None:
            own = F.linear(memory, self.joined.weight[width:], self.joined.bias[width:])[:, None]
            first_key, first_value = own.split(width, -1)
            key = torch.cat((self.split(first_key), key), 2)
            value = torch.cat((self.split(first_value), value), 2)
        rate = self.dropout[1]
        if self.sdpa:
            causal = isinstance(bias, str)
            mask = None if causal or bias is None else bias.to(query.dtype)
            y = F.scaled_dot_product_attention(query, key, value, mask, rate, causal)
        else:
            scores = torch.matmul(query * (1 / math.sqrt(query.shape[-1])), key.transpose(-1, -2))
            if isinstance(bias, str):
                bias = torch.full(scores.shape[-2:], NOTHING, device=scores.device).triu(1)
            if bias is not None:
                scores = scores + bias
            y = torch.matmul(drop(scores.softmax(-1), rate).to(value.dtype), value)
        return self.output(y.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, sizes, dropout, sdpa):
        super().__init__()
        width, inner, eps = sizes["width"], sizes["inner"], sizes["eps"]
        self.attention = Attention(sizes, dropout, sdpa)
        self.ffn = nn.ModuleDict({"up": nn.Linear(width, inner), "down": nn.Linear(inner, width)})
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.dropout = dropout

    def forward(self, x, bias=None, turns=None, memory=None, first_only=False):
        a = self.attention(x, bias, turns, memory, first_only)
        x = x[:, :1] if first_only else x
        x = self.norm1(x + drop(a, self.dropout[0]))
        f = self.ffn["down"](F.gelu(self.ffn["up"](x)))
        return self.norm2(x + drop(f, self.dropout[0]))


class Embedding(nn.Module):
    def __init__(self, sizes, dropout):
        super().__init__()
        width = sizes["width"]
        self.token, self.kind = nn.Embedding(sizes["vocabulary"], width), nn.Embedding(2, width)
        if not sizes["rotary"]:
            self.position = nn.Embedding(sizes["positions"], width)
        self.norm, self.dropout = nn.LayerNorm(width, sizes["eps"]), dropout

    def forward(self, ids, types):
        x = self.token(ids) + self.kind(types)
        if hasattr(self, "position"):
            x = x + self.position.weight[: ids.shape[1]]
        return drop(self.norm(x), self.dropout[0])


class Head(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes["width"]
        self.dense, self.norm = nn.Linear(width, width), nn.LayerNorm(width, sizes["eps"])
        self.bias = nn.Parameter(torch.zeros(sizes["vocabulary"]))

    def forward(self, x, words, targets):
        """Returns the mean loss of the hidden states x (N,C). words (V,C) is the embedding table."""
        h = self.norm(F.gelu(self.dense(x)))
        return F.cross_entropy(F.linear(h, words, self.bias).float(), targets)


class Latent(nn.Module):
    """Von Mises-Fisher latent: y = In x, mu = y / |y|, z is drawn around mu, and the result is Out z."""

    def __init__(self, sizes):
        super().__init__()
        self.into = nn.Linear(sizes["width"], sizes["latent_size"])
        self.out = nn.Linear(sizes["latent_size"], sizes["width"])

    def forward(self, x, w, e):
        """w (B): the component of z along mu. e (B,Z): standard normal numbers."""
        with torch.autocast(x.device.type, enabled=False):
            y = F.linear(x.float(), self.into.weight.float(), self.into.bias.float())
            mu = F.normalize(y, dim=-1, eps=1e-6)
            side = F.normalize(e - (e * mu).sum(-1, keepdim=True) * mu, dim=-1, eps=1e-6)
            w = w[:, None]
            z = w * mu + (1 - w * w).clamp(min=0).sqrt() * side
        return self.out(z.to(self.out.weight.dtype))


class Model(nn.Module):
    def __init__(self, sizes, sdpa):
        super().__init__()
        dropout = [sizes["dropout"], sizes["attention_dropout"]]  # of hidden states and of attention probabilities
        self.sizes, self.dropout = sizes, dropout
        self.embedding = Embedding(sizes, dropout)
        self.layer = nn.ModuleList(Block(sizes, dropout, sdpa) for _ in range(sizes["layers"]))
        self.head = Head(sizes)
        self.latent = nn.ModuleList(Latent(sizes) for _ in range(sizes["latent_layers"]))
        if sizes["rotary"]:
            pairs = sizes["width"] // sizes["heads"] // 2
            rate = 10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
            angle = torch.arange(sizes["positions"], dtype=torch.float64)[:, None] * rate
            self.cosine, self.sine = angle.cos().float(), angle.sin().float()

    def turns(self, begin, end):
        return (self.cosine[begin:end], self.sine[begin:end]) if self.sizes["rotary"] else None

    def score(self, x, targets):
        return self.head(x, self.embedding.token.weight, targets)


class Bert:
    """Documents of equal length. The first half of each document is bidirectional and does not see the second half. The
    second half is causal and sees the first half."""

    def __init__(self, sizes, batch):
        self.ids = torch.tensor(batch["ids"])
        self.targets = torch.tensor(batch["targets"]).flatten()
        length = self.ids.shape[1]
        half = length // 2
        self.types = (torch.arange(length) >= half).long()
        self.bias = torch.zeros(length, length)
        self.bias[:half, half:] = NOTHING
        self.bias[half:, half:] = torch.full((half, half), NOTHING).triu(1)

    def loss(self, model, noise):
        x = model.embedding(self.ids, self.types)
        for layer in model.layer:
            x = layer(x, self.bias)
        return model.score(x.flatten(0, 1), self.targets)


class Sentences:
    """UniVAE in split form: an encoder pass up to layer L - 2, and a decoder pass with one extra key per latent. The
    loss covers real tokens only. Sentences are padded to the longest."""

    def __init__(self, sizes, batch):
        self.ids = nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in batch["ids"]], batch_first=True)
        self.start, self.first = sizes["max_length"], sizes["layers"] - sizes["latent_layers"]
        length = self.ids.shape[1]
        seen = self.ids[:, None, None, :] != 0
        self.encoder_bias = torch.zeros(seen.shape).masked_fill(~seen, NOTHING)
        causal = torch.full((length - 1, length - 1), NOTHING).triu(1)
        self.latent_bias = F.pad(causal, (1, 0))
        targets = self.ids[:, 1:].flatten()
        self.scored = targets.nonzero()[:, 0]
        self.targets = targets[self.scored]
        self.zeros, self.ones = torch.zeros_like(self.ids), torch.ones_like(self.ids[:, 1:])

    def loss(self, model, noise):
        z = self.encode(model, noise)
        x = model.embedding(self.ids[:, :-1], self.ones)
        turns = model.turns(self.start, self.start + x.shape[1])
        for i, layer in enumerate(model.layer):
            if i < self.first:
                x = layer(x, "causal", turns)
            else:
                x = layer(x, self.latent_bias, turns, z[i - self.first])
        return model.score(x.flatten(0, 1)[self.scored], self.targets)

    def encode(self, model, noise):
        """Returns the vectors Out z of all latent layers."""
        found, (w, e) = [], noise
        x = model.embedding(self.ids, self.zeros)
        turns, last = model.turns(0, x.shape[1]), len(model.layer) - 1
        for i, layer in enumerate(model.layer):
            if i >= self.first:
                l = i - self.first
                found.append(model.latent[l](x[:, 0], w[l], e[l]))
                if i == last:
                    break
                x = torch.cat((found[-1][:, None].to(x.dtype), x[:, 1:]), 1)
            x = layer(x, self.encoder_bias, turns, None, i == last - 1)
        return found


class Training:
    """A model in one variant, and its full training step."""

    def work(self, request):
        self.request, self.wait = request, peer.prepare(torch, request)
        torch.manual_seed(1)
        self.arithmetic = torch.autocast(request["device"], torch.bfloat16, enabled=request["precision"] == "bf16")
        with torch.device(request["device"]):
            self.batch = (Bert if request["targets"] else Sentences)(request["sizes"], request)
            self.noise = None
            if request["noise"]:
                w, e = (torch.tensor(request["noise"][name]) for name in ("w", "e"))
                self.noise = w, e.view(*w.shape, -1)
        check = self.check()
        self.build()
        self.forget_peak()
        self.step()
        tolerances = {"loss": 1e-5, "norm": 1e-3, "next": 1e-4}
        if request["precision"] == "bf16":
            tolerances = {"loss": 5e-3, "norm": 5e-2, "next": 1e-2}
        ours = request["check"]
        agrees = all(abs(ours[k] - check[k]) <= tolerances[k] * max(1.0, abs(ours[k])) for k in tolerances)
        numbers = f"loss {check['loss']:.5f}, norm {check['norm']:.5f}, after an update {check['next']:.5f}"
        return {
            "version": peer.version(torch),
            "said": f"{request['variant']}; {numbers}",
            "variant": request["variant"],
            "check": check,
            "agrees": agrees and sum(p.numel() for p in self.parameters) == request["parameters"],
        }

    def turn(self):
        self.step()  # not timed, because ./bench has filled the caches with its own data
        return {"seconds": peer.seconds_of(self.step, self.request["budget"]), "peak_bytes": self.peak_bytes()}

    def build(self, dropout=True):
        """Builds the model with the weights of ./bench, the optimiser and, if compiled, the loss."""
        request, rule = self.request, self.request["rule"]
        with torch.device(request["device"]):
            self.model = Model(request["sizes"], request["variant"].endswith("sdpa"))
        if not dropout:
            self.model.dropout[:] = 0.0, 0.0
        self.load_weights()
        self.parameters = list(self.model.parameters())
        groups = [
            {"params": [p for p in self.parameters if p.dim() > 1], "weight_decay": rule["decay"]},
            {"params": [p for p in self.parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW(
            groups, rule["rate"], (rule["beta1"], rule["beta2"]), rule["eps"], fused=True
        )
        self.loss = self.batch.loss
        if request["variant"].startswith("compiled") and dropout:
            self.loss = torch.compile(self.loss, dynamic=False)

    def step(self):
        with self.arithmetic:
            loss = self.loss(self.model, self.noise)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.request["rule"]["clip"], foreach=True)
        self.optimiser.step()
        value = loss.item()
        self.wait()
        return value

    def check(self):
        """Computes one step without dropout, with the weights and noise of ./bench, and returns its results. The step
        is never compiled, because this checks the model, not the compiler."""
        self.build(dropout=False)
        loss, norm = self.step(), float(self.norm)
        with torch.no_grad(), self.arithmetic:
            return {"loss": loss, "norm": norm, "next": self.loss(self.model, self.noise).item()}

    def load_weights(self):
        """Loads the weights of ./bench by their names."""
        with open(self.request["weights"], "rb") as file, torch.no_grad():

            def read(name, to):
                file.seek(self.request["places"][name])
                data = bytearray(file.read(4 * to.numel()))
                to.copy_(torch.frombuffer(data, dtype=torch.float32).view(to.shape))

            for name, p in self.model.named_parameters():
                # `type` is a method of nn.Module and `in` is a keyword, so these attributes have other names here.
                name = name.replace(".kind.", ".type.").replace(".into.", ".in.")
                if "joined" in name:
                    width = self.request["sizes"]["width"]
                    read(name.replace("joined", "query"), p[:width])
                    read(name.replace("joined", "key_value"), p[width:])
                else:
                    read(name, p)

    def forget_peak(self):
        if self.request["device"] == "cuda":
            torch.cuda.reset_peak_memory_stats()
        else:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")

    def peak_bytes(self):
        """The peak resident memory, or the peak memory on the GPU."""
        if self.request["device"] == "cuda":
            return torch.cuda.max_memory_allocated()
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


if __name__ == "__main__":
    peer.serve(Training)

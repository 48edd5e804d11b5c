# SPDX-License-Identifier: MIT
"""The models of ./bench train in PyTorch, with the names and sizes of the parameters that ours have. A form is a
batch with the model that reads it: Bert, Split and Joint have a loss(), the mean over the scored tokens."""
import math

import torch
import torch.nn.functional as F
from torch import nn

NOTHING = -1e9  # added to the score of a key that is not seen


def drop(x, rate):
    return F.dropout(x, rate) if rate > 0 else x


def turned(x, turns):
    """Pairs (2i, 2i + 1) of every head turned; turns is the cosines and the sines, (n, D/2) each."""
    cosine, sine = turns
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cosine - b * sine, b * cosine + a * sine), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, sizes, dropout, kind):
        super().__init__()
        width = sizes["width"]
        self.heads, self.width, self.dropout, self.kind = sizes["heads"], width, dropout, kind
        self.joined = nn.Linear(width, 3 * width)  # query, key, value
        self.output = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, bias, turns, memory, first_only):
        """bias: added to the scores, or None, or "causal"; memory (B,C): one more key at position 0, in front."""
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
        if self.kind == "sdpa":
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
    def __init__(self, sizes, dropout, kind):
        super().__init__()
        width, inner, eps = sizes["width"], sizes["inner"], sizes["eps"]
        self.attention = Attention(sizes, dropout, kind)
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

    def forward(self, x, words, targets, weights, fused):
        """The mean loss of x (N,C), or its sum over the rows with weights (N); words (V,C): the embedding."""
        h = self.norm(F.gelu(self.dense(x)))
        how = "mean" if weights is None else "none"
        if fused:
            options = nn.LinearCrossEntropyOptions()
            losses = F.linear_cross_entropy(
                h, words, targets, linear_bias=self.bias, reduction=how, options=options
            )
        else:
            losses = F.cross_entropy(F.linear(h, words, self.bias).float(), targets, reduction=how)
        return losses if weights is None else (losses * weights).sum()


class Latent(nn.Module):
    """Von Mises-Fisher: y = In x, mu = y / |y|, z around mu, Out z."""

    def __init__(self, sizes):
        super().__init__()
        self.into = nn.Linear(sizes["width"], sizes["latent_size"])
        self.out = nn.Linear(sizes["latent_size"], sizes["width"])

    def forward(self, x, w, e):
        """w (B): the share of mu; e (B,Z): normal numbers."""
        with torch.autocast(x.device.type, enabled=False):
            y = F.linear(x.float(), self.into.weight.float(), self.into.bias.float())
            mu = F.normalize(y, dim=-1, eps=1e-6)
            side = F.normalize(e - (e * mu).sum(-1, keepdim=True) * mu, dim=-1, eps=1e-6)
            w = w[:, None]
            z = w * mu + (1 - w * w).clamp(min=0).sqrt() * side
        return self.out(z.to(self.out.weight.dtype))


class Model(nn.Module):
    def __init__(self, sizes, variant):
        super().__init__()
        dropout = [sizes["dropout"], sizes["attention_dropout"]]  # of hidden states and of attention probabilities
        kind = variant["attention"]
        self.sizes, self.dropout = sizes, dropout
        self.fused_loss = variant["loss"] == "chunked"
        self.embedding = Embedding(sizes, dropout)
        self.layer = nn.ModuleList(Block(sizes, dropout, kind) for _ in range(sizes["layers"]))
        self.head = Head(sizes)
        self.latent = nn.ModuleList(Latent(sizes) for _ in range(sizes["latent_layers"]))
        if sizes["rotary"]:
            pairs = sizes["width"] // sizes["heads"] // 2
            rate = 10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
            angle = torch.arange(sizes["positions"], dtype=torch.float64)[:, None] * rate
            self.cosine, self.sine = angle.cos().float(), angle.sin().float()

    def turns(self, begin, end):
        return (self.cosine[begin:end], self.sine[begin:end]) if self.sizes["rotary"] else None

    def score(self, x, targets, weights=None):
        return self.head(x, self.embedding.token.weight, targets, weights, self.fused_loss)


def padded(sentences, length):
    ids = torch.zeros(len(sentences), length, dtype=torch.long)
    for row, sentence in zip(ids, sentences):
        row[: len(sentence)] = torch.tensor(sentence)
    return ids


class Form:
    def noise(self):
        return None

    def weigh_real(self):
        """From here on the loss is that of real tokens alone, as ours is."""


class Bert(Form):
    """All documents as long as each other; the second half of each is causal and sees the first."""

    def __init__(self, sizes, batch):
        self.ids = torch.tensor(batch["sentences"])
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


class Sentences(Form):
    """What both forms of UniVAE share: the ids, and the noise of the latents."""

    def __init__(self, sizes, batch, length):
        self.ids = padded(batch["sentences"], length)
        self.layers, self.size = sizes["latent_layers"], sizes["latent_size"]
        self.start, self.first = sizes["max_length"], sizes["layers"] - sizes["latent_layers"]
        self.quantiles = torch.tensor(batch["quantiles"])  # of the component along mu, at equal steps of the share

    def noise(self):
        rows, steps = len(self.ids), len(self.quantiles) - 1
        device = self.ids.device
        place = torch.rand(self.layers, rows, device=device) * steps
        below = place.long().clamp(max=steps - 1)
        w = torch.lerp(self.quantiles[below], self.quantiles[below + 1], place - below)
        return w, torch.randn(self.layers, rows, self.size, device=device)


class Split(Sentences):
    """An encoder pass through layer L - 2, a decoder pass with one key for each latent; the loss on real tokens."""

    def __init__(self, sizes, batch):
        length = max(map(len, batch["sentences"]))
        super().__init__(sizes, batch, length)
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
        """Out z of every latent layer."""
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


class Joint(Sentences):
    """The form of the reference: both halves in one sequence, padded to the greatest length, all positions through
    all layers and the head, the loss over padded targets too (bojone/univae)."""

    def __init__(self, sizes, batch):
        length = sizes["max_length"]
        super().__init__(sizes, batch, length)
        self.both = torch.cat((self.ids, self.ids), 1)
        self.types = (torch.arange(2 * length) >= length).long()
        half = torch.arange(2 * length) // length
        place = torch.arange(2 * length)
        same = half[:, None] == half[None]
        lower = same & ((half[:, None] == 0) | (place[None] <= place[:, None]))
        upper = lower.clone()
        upper[length:, 0] = True
        real = (self.both != 0)[:, None, None, :]
        self.lower = torch.zeros(()).where(lower & real, torch.tensor(NOTHING))
        self.upper = torch.zeros(()).where(upper & real, torch.tensor(NOTHING))
        self.targets = self.both[:, 1:].flatten()
        weights = (place[1:] >= length).float().expand(len(self.ids), -1).flatten()
        self.weights = weights / weights.sum()
        self.decoder = (place[:-1] >= length).expand(len(self.ids), -1).flatten()

    def weigh_real(self):
        real = self.decoder & (self.targets != 0)
        self.weights = real / real.sum()

    def loss(self, model, noise):
        w, e = noise
        x = model.embedding(self.both, self.types)
        turns = model.turns(0, x.shape[1])
        for i, layer in enumerate(model.layer):
            bias = self.lower
            if i >= self.first:
                l, bias = i - self.first, self.upper
                u = model.latent[l](x[:, 0], w[l], e[l])
                x = torch.cat((u[:, None].to(x.dtype), x[:, 1:]), 1)
            x = layer(x, bias, turns)
        return model.score(x[:, :-1].flatten(0, 1), self.targets, self.weights)

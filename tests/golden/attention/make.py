#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden.jsonl: what every kind of attention gives, with every option, under every mask that it honours.

    tests/golden/attention/make.py

Plain sums over the keys that a row sees, in double, written from the papers' equations: no state, no stream of maxima, no
sharing of work. Numbers of weights and rows follow from their names (numbers_of), so the file holds results alone: for each
half of each document the sum of its rows' numbers, each times a number of its own."""
import json
import pathlib

import numpy as np

import masks

C, P = 8, 20  # width, positions
NONE = object()


def numbers_of(name, *shape):
    """Uniform in [-1, 1), by FNV-1a of the name and SplitMix64."""
    h = 0xcbf29ce484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    found = []
    for i in range(int(np.prod(shape))):
        z = (h + (i + 1) * 0x9e3779b97f4a7c15) % 2**64
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 % 2**64
        z = (z ^ z >> 27) * 0x94d049bb133111eb % 2**64
        found.append(((z ^ z >> 31) >> 11) / 2**52 - 1)
    return np.array(found).reshape(shape)


class Attention:
    """One layer. x: rows of the queries; keys: rows that are looked at; memory: a row of each document, or None."""

    def __init__(self, kind, settings, mask, salt, layer=0):
        self.kind, self.mask = kind, mask
        self.name = "layer.%d.%s" % (layer, "cross" if mask == "cross" else "attention")
        self.salt = salt
        self.o = settings
        self.H = settings.get("heads", 2)
        self.D = C // self.H
        self.rows, self.query_positions, self.key_positions = masks.rows_of(mask)

    def weight(self, what, *shape):
        path = what[6:] if what.startswith("../../") else "%s.%s" % (self.name, what)  # ../../: outside of the layer
        return (2.5 if what == "features" else 0.8) * numbers_of("%s/%s" % (self.salt, path), *shape)

    def linear(self, what, x, columns=C):
        y = x @ self.weight(what + ".weight", columns, C).T
        return y + self.weight(what + ".bias", columns) if self.o.get("bias", True) else y

    def turned(self, x, positions, heads_of=None):
        """Pairs of neighbours (2i, 2i+1) of a head turn by p 10000^(-2i/D)."""
        if not self.o.get("rotary"):
            return x
        D, y = self.D, x.copy()
        for n, p in enumerate(positions):
            for start in range(0, x.shape[1], 2):
                angle = p * 10000.0 ** (-(start % D) / D)
                a, b = x[n, start], x[n, start + 1]
                y[n, start], y[n, start + 1] = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
        return y

    def value(self, x, positions, turns):
        return self.turned(x, positions) if turns and self.o.get("rotary_value") else x

    def heads(self, x):
        return x.reshape(x.shape[0], self.H, -1)

    def __call__(self, x, keys, memory):
        self.x, self.keys, self.memory = x, keys, memory
        y = getattr(self, "run_" + self.kind.replace("-", "_"))()
        return self.linear("output", y)

    def all_keys(self, make):
        """make(rows, positions, turns): the numbers of keys, of rows and memory: a function of a key."""
        own = make(self.keys, self.key_positions, True)
        memory = make(self.memory, [0] * len(self.memory), False) if self.memory is not None else None
        return lambda key: memory[key[1]] if isinstance(key, tuple) else own[key]

    # softmax and its sparse forms

    def weighed(self, has):
        """has(i, j, h): whether head h of place i has place j. With G heads of keys and values, each is read by H / G
        heads of queries that follow one another."""
        G = self.o.get("kv_heads") or self.H
        turn = lambda x, positions, turns: self.turned(x, positions) if turns else x
        split = lambda x: np.repeat(x.reshape(x.shape[0], G, self.D), self.H // G, axis=1)
        query = self.heads(self.turned(self.linear("query", self.x), self.query_positions))
        def make(rows, positions, turns):
            kv = self.linear("key_value", rows, 2 * G * self.D)
            k, v = kv[:, :G * self.D], kv[:, G * self.D:]
            return list(zip(split(turn(k, positions, turns)),
                            split(turn(v, positions, turns) if self.o.get("rotary_value") else v)))
        key_value = self.all_keys(make)
        y = np.zeros_like(self.x)
        for n, row in enumerate(self.rows):
            for h in range(self.H):
                seen = [key_value(key) for key in row.seen if key not in row.places or has(row.place, row.places[key], h)]
                if seen:
                    y[n, h * self.D:(h + 1) * self.D] = softmax_head(query[n][h], [k[h] for k, _ in seen], [v[h] for _, v in seen])
        return y

    def run_softmax(self):
        return self.weighed(lambda i, j, h: True)

    def run_window(self):
        w, d = self.o.get("window", 16), self.o.get("dilation", 1)
        return self.weighed(lambda i, j, h: abs(i - j) <= w * d and abs(i - j) % d == 0)

    def run_longformer(self):
        w, d, g = self.o.get("window", 16), self.o.get("dilation", 1), self.o.get("globals", 1)
        return self.weighed(lambda i, j, h: (abs(i - j) <= w * d and abs(i - j) % d == 0) or i < g or j < g)

    def stride(self):
        return self.o.get("stride", 0) or round(P ** 0.5)

    def run_strided(self):
        l = self.stride()
        return self.weighed(lambda i, j, h: abs(i - j) < l or abs(i - j) % l == 0)

    def run_fixed(self):
        l, g = self.stride(), self.o.get("globals", 1)
        return self.weighed(lambda i, j, h: i // l == j // l or j % l >= l - g)

    def run_local(self):
        w = self.o.get("window", 16)
        return self.weighed(lambda i, j, h: i // w - j // w in (0, 1))

    def run_by_head(self):
        """A pattern for each head: the conditions by name, of which one is enough."""
        l, words = round(P ** 0.5), self.o.get("patterns", "")
        patterns = [None] * self.H
        for each in words.split("|") if words else []:
            heads, *keys = each.split(",")
            first, last = [int(end) if end else None for end in heads.split(":")]
            for h in list(range(self.H))[first:last]:
                patterns[h] = dict((key.split("=")[0], int(key.split("=")[1])) for key in keys if key != "full")
        if not words:
            patterns = [{"window": l - 1} if 2 * h < self.H else {"stride": l} for h in range(self.H)]
        def has(i, j, h):
            p, away = patterns[h], abs(i - j)
            if not p:
                return True
            size, own = p.get("block"), "block" not in p or "stride" in p
            return (("window" in p and away <= p["window"] * p.get("dilation", 1) and away % p.get("dilation", 1) == 0) or
                    (own and away == 0) or ("stride" in p and away % p["stride"] == 0) or
                    i < p.get("globals", 0) or j < p.get("globals", 0) or
                    (size is not None and (i // size - j // size in range(p.get("before", 0) + 1) or j % size >= size - p.get("last", 0))))
        return self.weighed(has)

    # rows that are sorted

    def run_lsh(self):
        rounds, buckets, chunk = (self.o.get(k, d) for k, d in (("rounds", 4), ("buckets", 16), ("chunk", 32)))
        rotations = self.heads(self.weight("rotations", rounds * buckets // 2, C))
        def make(rows, positions, turns):
            q = self.linear("query", rows)
            return list(zip(self.heads(self.turned(q, positions) if turns else q),
                            self.heads(self.value(self.linear("value", rows), positions, turns))))
        query_value = self.all_keys(make)
        y = np.zeros((len(self.x), self.H, self.D))
        for n, row in enumerate(self.rows):
            whole = all(set(r.seen) == set(row.seen) for r in self.rows if r.places == row.places)
            q, v = ({key: query_value(key)[i] for key in row.seen} for i in (0, 1))
            for h in range(self.H):
                found = set()
                for r in range(rounds):
                    of = rotations[r * buckets // 2:(r + 1) * buckets // 2, h]
                    bucket = {key: int(np.argmax(np.concatenate([of @ q[key][h], -of @ q[key][h]]))) for key in row.seen}
                    ordered = sorted(row.seen, key=bucket.get)
                    first = {key: 0 if whole else [bucket[k] for k in ordered].index(bucket[key]) for key in row.seen}
                    chunk_of = {key: (place - first[key]) // chunk for place, key in enumerate(ordered)}
                    found |= {j for j in row.seen if j != n and bucket[j] == bucket[n] and chunk_of[n] - chunk_of[j] in (0, 1)}
                keys = [j for j in row.seen if j in found] or [n]
                y[n, h] = softmax_head(q[n][h], [q[j][h] / np.linalg.norm(q[j][h]) for j in keys], [v[j][h] for j in keys])
        return y.reshape(len(self.x), C)

    def run_sinkhorn(self):
        block, steps, temperature = (self.o.get(k, d) for k, d in (("chunk", 32), ("iterations", 7), ("temperature", 0.75)))
        def make(rows, positions, turns):
            kv = self.linear("key_value", rows, 2 * C)
            turn = lambda x: self.heads(self.turned(x, positions) if turns else x)
            return list(zip(turn(self.linear("query", rows)), turn(kv[:, :C]), self.heads(self.value(kv[:, C:], positions, turns))))
        of_key = self.all_keys(make)
        y = np.zeros((len(self.x), self.H, self.D))
        for n, row in enumerate(self.rows):
            whole = all(set(r.seen) == set(row.seen) for r in self.rows if r.places == row.places)
            q, k, v = ({key: of_key(key)[i] for key in row.seen} for i in range(3))
            blocks = [row.seen[i:i + block] for i in range(0, len(row.seen), block)]
            u = row.seen.index(n) // block
            mixed = (len(blocks) if len(blocks) > 1 else 0) if whole else u
            for h in range(self.H):
                mean = lambda x, keys: np.mean([x[j][h] for j in keys], axis=0)
                asks = [mean(q, each if whole else row.seen[:i * block + 1]) for i, each in enumerate(blocks)]
                E = np.exp(np.array([[a @ mean(k, each) for each in blocks] for a in asks]) / (self.D ** 0.5 * temperature))
                if whole:
                    for _ in range(steps):
                        E = E / E.sum(axis=0, keepdims=True)
                        E = E / E.sum(axis=1, keepdims=True)
                else:
                    E, r = np.tril(E, -1)[:u + 1], np.ones(u + 1)
                    for _ in range(steps):
                        c = np.cumsum(E / r[:, None], axis=0) + np.triu(np.ones(E.shape))  # of rows up to one's own
                        r = (E / c).sum(axis=1) + (np.arange(u + 1) == 0)  # the first block has no earlier block
                    E = E / c / r[:, None]
                keys, values = [k[j][h] for j in blocks[u]], [v[j][h] for j in blocks[u]]
                for t in range(block if mixed else 0):
                    those = [w for w in range(mixed) if t < len(blocks[w])]
                    share = {w: E[u, w] / sum(E[u, other] for other in those) for w in those}
                    keys.append(sum(share[w] * k[blocks[w][t]][h] for w in those))
                    values.append(sum(share[w] * v[blocks[w][t]][h] for w in those))
                y[n, h] = softmax_head(q[n][h], keys, values)
        return y.reshape(len(self.x), C)

    # packed keys

    def run_luna(self):
        l, tied = self.o.get("slots", 16), self.o.get("tied")
        contextual, pre = self.o.get("contextual", True), self.o.get("pre_norm")
        key_value = lambda what, x: (lambda y: (y[:, :C], y[:, -C:]))(self.linear(what, x, C if tied else 2 * C))
        def norm(p):
            rms = self.o.get("norm") == "rms"
            mean = 0 if rms else p.mean(axis=1, keepdims=True)
            square = ((p - mean) ** 2).mean(axis=1, keepdims=True)
            y = (p - mean) / np.sqrt(square + self.o["norm_eps"]) * self.weight("norm_packed.weight", C)
            return y if rms else y + self.weight("norm_packed.bias", C)
        query = self.linear("query", self.x)
        packed_keys = self.all_keys(lambda rows, positions, turns: list(zip(*key_value("pack_key_value", rows))))
        y = np.zeros_like(self.x)
        for n, row in enumerate(self.rows):
            p = self.packed.get(tuple(row.seen), 0.8 * numbers_of(self.salt + "/slots", l, C))
            seen = [(self.heads(k[None])[0], self.heads(v[None])[0]) for k, v in map(packed_keys, row.seen)]
            q = self.linear("pack_query", norm(p) if pre and contextual else p)
            y_p = np.array([softmax_of(self.heads(each[None])[0], seen, self.D) for each in q])
            k, v = key_value("key_value", y_p)
            live = min(l, len(row.seen))
            y[n] = softmax_of(self.heads(query[n:n + 1])[0], list(zip(self.heads(k), self.heads(v)))[:live], self.D)
            if contextual:
                self.next_packed[tuple(row.seen)] = p + y_p if pre else norm(p + y_p)
        return y

    def slots_read(self, pack, key_value, normed, pack_values=None):
        """pack(key): (H,R) weights; a slot is the sum of keys times weights, over their sum (normed) or number. Values
        have weights of their own, pack_values(key), or those of the keys."""
        query = self.heads(self.turned(self.linear("query", self.x), self.query_positions))
        y = np.zeros_like(self.x)
        for n, row in enumerate(self.rows):
            if not row.seen:
                continue
            w = np.array([pack(key) for key in row.seen])  # (keys,H,R)
            f = np.array([(pack_values or pack)(key) for key in row.seen])
            k = np.array([key_value(key)[0] for key in row.seen])
            v = np.array([key_value(key)[1] for key in row.seen])
            total = w.sum(axis=0)[..., None] if normed else len(row.seen)
            K, V = np.einsum("jhr,jhd->hrd", w, k) / total, np.einsum("jhr,jhd->hrd", f, v) / total
            y[n] = np.concatenate([softmax_head(query[n, h], K[h], V[h]) for h in range(self.H)])
        return y

    def run_luna_causal(self):
        l, tied, pack = self.o.get("slots", 16), self.o.get("tied"), self.o.get("pack", "softplus")
        p = self.heads(self.linear("pack_query", self.weight("slots", l, C)))
        def scores(rows, positions, turns):
            s = np.einsum("lhd,nhd->nhl", p, self.heads(self.linear("pack_key", rows))) / self.D ** 0.5
            return {"softplus": lambda: np.log2(1 + 2 ** s), "elu": lambda: np.where(s > 0, s + 1, np.exp(s)), "softmax": lambda: np.exp(s)}[pack]()
        def key_value(rows, positions, turns):
            kv = self.linear("key_value", rows, C if tied else 2 * C)
            k = self.turned(kv[:, :C], positions) if turns else kv[:, :C]
            return list(zip(self.heads(k), self.heads(self.value(kv[:, -C:], positions, turns))))
        return self.slots_read(self.all_keys(scores), self.all_keys(key_value), pack == "softmax")

    def run_linformer(self):
        l = self.o.get("slots", 16)
        sharing, F = self.o.get("sharing", "none"), self.o.get("value_weights")
        name = ("" if sharing == "none" else "shared_") + ("key_value_" if F else "") + "positions"
        if sharing == "layerwise":
            name = "../../linformer.%s.%s" % (self.name.split(".")[-1], name)
        heads = self.H if sharing == "none" else 1
        tables = self.weight(name, P, heads, 2 if F else 1, l)
        E, F = (np.broadcast_to(t, (P, self.H, l)) for t in (tables[:, :, 0], tables[:, :, -1]))
        def key_value(rows, positions, turns):
            kv = self.linear("key_value", rows, 2 * C)
            return list(zip(self.heads(self.turned(kv[:, :C], positions)), self.heads(self.value(kv[:, C:], positions, turns))))
        pack, of_values = (self.all_keys(lambda rows, positions, turns: [t[p] for p in positions]) for t in (E, F))
        return self.slots_read(pack, self.all_keys(key_value), False, of_values)

    # kernels

    def kernel(self, phi, least=0.0):
        """sum_j phi(q).phi(k_j) v_j over the sum of these products, which is held at `least` for each key."""
        gated = self.o.get("gate") and self.kind == "rfa"
        query = phi(self.heads(self.turned(self.linear("query", self.x), self.query_positions)))
        def make(rows, positions, turns):
            k = self.linear("key", rows)
            g = 1 / (1 + np.exp(-self.linear("gate", rows, self.H))) if gated else np.zeros((len(rows), self.H))
            return list(zip(phi(self.heads(self.turned(k, positions) if turns else k)), self.heads(self.value(self.linear("value", rows), positions, turns)), g))
        key_value = self.all_keys(make)
        y = np.zeros((len(self.x), self.H, self.D))
        for n, row in enumerate(self.rows):
            for h in range(self.H):
                top, under = np.zeros(self.D), 0.0
                for key in row.seen:
                    k, v, g = key_value(key)
                    product = query[n, h] @ k[h] * ((1 - g[h]) if gated else 1)
                    fade = g[h] if gated else 1
                    top, under = top * fade + product * v[h], under * fade + product
                if row.seen:
                    held = least * (1 if gated else len(row.seen))
                    if abs(under) < held:
                        self.held.add(np.sign(under))
                        under = np.sign(under) * held
                    y[n, h] = top / under
        return y.reshape(len(self.x), C)

    def run_performer(self):
        R, kind = self.o.get("features", 64), self.o.get("feature_map", "positive")
        W = self.heads(self.weight("features", R, C))
        def phi(x):
            x = x / self.D ** 0.25
            t, half = np.einsum("rhd,nhd->nhr", W, x), (x * x).sum(axis=2, keepdims=True) / 2
            return {"positive": lambda: np.exp(t - half) / R ** 0.5,
                    "hyperbolic": lambda: np.concatenate([np.exp(t - half), np.exp(-t - half)], axis=2) / (2 * R) ** 0.5,
                    "trigonometric": lambda: np.concatenate([np.cos(t), np.sin(t)], axis=2) * np.exp(half) / R ** 0.5,
                    "relu": lambda: np.maximum(t, 0) + 1e-3}[kind]()
        return self.kernel(phi, 1e-3 if kind == "trigonometric" else 0)

    def run_rfa(self):
        R = self.o.get("features", 64)
        W = self.heads(self.weight("features", R, C) * self.weight("sharpness", C))
        def phi(x):
            t = np.einsum("rhd,nhd->nhr", W, x / np.linalg.norm(x, axis=2, keepdims=True))
            return np.concatenate([np.sin(t), np.cos(t)], axis=2) / R ** 0.5
        return self.kernel(phi, 0.05)

    def run_linear(self):
        return self.kernel(lambda x: np.where(x > 0, x + 1, np.exp(x)))

    def run_lambda(self):
        query = self.heads(self.linear("query", self.x))
        reach = 0 if self.mask == "cross" else self.o.get("reach", 0)
        e = self.heads(self.weight("distances", 2 * reach + 1, C)) if reach else None
        key = self.all_keys(lambda rows, positions, turns: self.heads(self.linear("key", rows)))
        value = self.all_keys(lambda rows, positions, turns: self.heads(self.linear("value", rows)))
        y = np.zeros((len(self.x), self.H, self.D))
        for n, row in enumerate(self.rows):
            if not row.seen:
                continue
            k, v = np.array([key(j) for j in row.seen]), np.array([value(j) for j in row.seen])  # (keys,H,D)
            w = np.exp(k / self.D ** 0.5)
            y[n] = np.einsum("hr,jhr,jhd->hd", query[n], w / w.sum(axis=0), v)
            for j in row.seen if reach else []:
                away = row.places[j] - row.place if j in row.places else reach + 1
                if abs(away) <= reach:
                    y[n] += (e[away + reach] * query[n]).sum(axis=1, keepdims=True) * value(j)
        return y.reshape(len(self.x), C)


def softmax_head(q, keys, values):
    w = np.exp(np.array(keys) @ q / len(q) ** 0.5)
    return w @ np.array(values) / w.sum()


def softmax_of(q, keys, D):
    """q (H,D), keys [((H,D), (H,D))]; nothing is seen: 0."""
    if not keys:
        return np.zeros(q.size)
    return np.concatenate([softmax_head(q[h], [k[h] for k, _ in keys], [v[h] for _, v in keys]) for h in range(len(q))])


def result(kind, settings, mask, salt, held):
    """Two layers, one behind the other, where the second may go on with what the first has packed; else one."""
    rows, query_positions, key_positions = masks.rows_of(mask)
    x = numbers_of(salt + "/x", len(query_positions), C)
    keys = numbers_of(salt + "/keys", len(key_positions), C) if mask == "cross" else NONE
    memory = numbers_of(salt + "/memory", len(masks.DOCUMENTS), C) if mask == "univae-upper" else None
    packed = {}
    for layer in range(2 if kind == "luna" else 1):
        attention = Attention(kind, settings, mask, salt, layer)
        attention.packed, attention.next_packed, attention.held = packed, {}, held
        x = attention(x, x if keys is NONE else keys, memory)
        packed = attention.next_packed
    times = numbers_of("times", len(x), C)
    sums = {}
    for n, row in enumerate(rows):
        sums.setdefault((row.document, row.part), []).append(float((x[n] * times[n]).sum()))
    return [float("%.13g" % sum(sums[part])) for part in sorted(sums)]


def main():
    every = masks.TOKENS + masks.PARTS
    softmaxes = every + masks.BITS
    some = ["bert", "unilm", "uniae", "lm-reverse", "plm"]
    turned, values = {"rotary": True}, {"rotary": True, "rotary_value": True}
    one = {"heads": 1}
    grouped = [{"heads": 4, "kv_heads": 2}, {"kv_heads": 1, "rotary": True, "rotary_value": True}]
    # kind: (masks, settings of the first line, settings that further lines change)
    table = {
        "softmax": (softmaxes + masks.WINDOWS, {}, [turned, values, one, *grouped]),
        "window": (softmaxes, {"window": 2}, [turned, values, one, *grouped, {"window": 1}, {"dilation": 2}, {"window": 1, "dilation": 3}]),
        "longformer": (softmaxes, {"window": 1}, [turned, values, one, *grouped, {"window": 2}, {"dilation": 2}, {"globals": 0}, {"globals": 2}]),
        "strided": (softmaxes, {"stride": 3}, [turned, values, one, *grouped, {"stride": 0}, {"stride": 2}]),
        "fixed": (softmaxes, {"stride": 3}, [turned, values, one, *grouped, {"stride": 0}, {"stride": 5}, {"globals": 0}, {"globals": 2}]),
        "local": (softmaxes, {"window": 3}, [turned, values, one, *grouped, {"window": 1}, {"window": 2}]),
        "by_head": (softmaxes, {"patterns": "0:1,window=1|-1:,stride=2"},
                    [turned, values, one, *grouped, {"patterns": ""}, {"patterns": "1:,window=1,dilation=3", "heads": 4},
                     {"patterns": "0:2,block=3,last=1|2:3,block=3,before=-1,last=1|3:,window=1,globals=2|-1:,stride=4,globals=1", "heads": 4,
                      "kv_heads": 2}]),
        "lsh": (masks.PREFIXES, {"rounds": 2, "buckets": 4, "chunk": 3},
                [turned, values, one, {"rounds": 1}, {"rounds": 4}, {"buckets": 2}, {"buckets": 8}, {"chunk": 1}, {"chunk": 32}]),
        "sinkhorn": ([m for m in masks.PREFIXES if m != "plm"], {"chunk": 3},
                     [turned, values, one, {"chunk": 2}, {"chunk": 4}, {"chunk": 32}, {"iterations": 1}, {"iterations": 2}, {"temperature": 0.5},
                      {"temperature": 2}]),
        "luna": (masks.WHOLE + ["insertion", "block-diffusion", "cross"], {"slots": 3},
                 [one, {"slots": 1}, {"slots": 16}, {"contextual": False}, {"tied": True}, {"pre_norm": True}, {"pre_norm": True, "tied": True},
                  {"pre_norm": True, "contextual": False}, {"norm_eps": 0.1}, {"norm": "rms"}, {"norm": "rms", "pre_norm": True}]),
        "luna_causal": (every, {"slots": 3}, [turned, values, one, {"slots": 1}, {"slots": 5}, {"pack": "elu"}, {"pack": "softmax"}, {"tied": True},
                                              {"tied": True, "pack": "softmax"}, {"pack": "elu", "rotary": True}]),
        "linformer": (every, {"slots": 3}, [turned, values, one, {"slots": 1}, {"slots": 5}, {"value_weights": True}, {"sharing": "headwise"},
                                            {"sharing": "layerwise", "value_weights": True}]),
        "performer": (every, {"features": 5},
                      [turned, values, one, {"features": 3}, {"features": 16}] +
                      [{"feature_map": m, "features": R} for m in ("hyperbolic", "trigonometric", "relu") for R in (5, 2)] +
                      [{"feature_map": "trigonometric", "features": 1, "held": [sign]} for sign in (-1, 1)] +
                      [{"feature_map": m, "rotary": True} for m in ("hyperbolic", "trigonometric", "relu")]),
        "rfa": (every, {"features": 5}, [turned, values, one, {"features": 2, "held": [-1, 1]}, {"features": 16}, {"gate": True},
                                         {"gate": True, "features": 2, "held": [-1, 1]},
                                         {"gate": True, "rotary": True}]),
        "linear": (every, {}, [turned, values, one]),
        "lambda": (every, {}, [one, {"reach": 1}, {"reach": 2}, {"reach": 12}]),
    }
    lines = []
    for kind, (honoured, base, changes) in table.items():
        for change in [{}, {"bias": False}] + changes:
            settings = {"heads": 2, "norm_eps": 1e-12, **base, **change}
            held = set()
            salt = kind
            wanted = set(settings.pop("held", []))
            here = honoured if not change or "reach" in change or "gate" in change else [m for m in some if m in honoured] or honoured
            for attempt in range(2000):  # until the floor holds sums of both signs, where there is one
                held.clear()
                found = {mask: result(kind, settings, mask, salt, held) for mask in (here if not wanted else ["lm-reverse"])}
                if held >= wanted:
                    break
                salt = "%s.%d" % (kind, attempt)
            else:
                raise SystemExit("%s %s: no sum lies below the floor" % (kind, settings))
            if wanted:
                found = {mask: result(kind, settings, mask, salt, held) for mask in here}
            words = " ".join("%s=%s" % (k, str(v).lower()) for k, v in settings.items())
            lines.append(json.dumps({"kind": kind, "settings": words, "salt": salt, "masks": found}, separators=(",", ":")))
            print(kind, words, salt, len(found))
    path = pathlib.Path(__file__).resolve().parent / "golden.jsonl"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

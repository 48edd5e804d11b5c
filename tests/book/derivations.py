#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Checks every derivation of docs/ops with numbers. The forward and backward of each op are written here as its page
# states them, without the code of the engine. The backward is compared with the complex step (docs/README.md, "How the
# derivations read").
#     python3 tests/book/derivations.py        no packages, one second; status 1: a derivation is wrong or missing
# A new backward in engine/ops/ops.h needs a function here. Its docstring quotes the last formulas of the page.
import math
import sys

from complex_step import Draw, Row, by_row, log_sum_exp, mean, one_by_one, op, positive, real, report, softmax
from complex_step import cos, exp, log, sin, sqrt, tanh

EXEMPT = {"convert": "not checked: it rounds, and its gradient is by decision that of the identity"}


# Matrices and rows

@op("linear", x=Draw(4, 3), w=Draw(2, 3), b=Draw(2))
def linear(x, w, b):
    """dx = dy w, dw = dy^T x, db_o = Σ_m dy_mo"""
    return x @ w.T + b, lambda dy: dict(dx=dy @ w, dw=dy.T @ x, db=sum(dy))

def norm(x, eps):
    """n and r of one row."""
    m = mean(x)
    r = 1 / sqrt(mean((x - m) * (x - m)) + eps)
    return (x - m) * r, r

@op("layernorm", x=Draw(3, 5), w=Draw(5), b=Draw(5), eps=0.01)
def layernorm(x, w, b, eps):
    """dw_i = Σ_rows dy_i n_i, db_i = Σ_rows dy_i
    dx_j = r (g_j - mean(g) - n_j mean(g n))"""
    n, r = map(Row, zip(*(norm(row, eps) for row in x)))

    def backward(dy):
        dx = by_row(lambda g, n, r: r * (g - mean(g) - n * mean(g * n)), dy * w, n, r)
        return dict(dx=dx, dw=sum(dy * n), db=sum(dy))
    return n * w + b, backward

@op("rms_norm", x=Draw(3, 5), w=Draw(5), eps=0.01)
def rms_norm(x, w, eps):
    """dw_i = Σ_rows dy_i n_i
    dx_j = r (g_j - n_j mean(g n))"""
    r = Row([1 / sqrt(mean(row * row) + eps) for row in x])
    n = by_row(lambda row, r: row * r, x, r)

    def backward(dy):
        return dict(dx=by_row(lambda g, n, r: r * (g - n * mean(g * n)), dy * w, n, r), dw=sum(dy * n))
    return n * w, backward

KEEP = Row([Row([1, 0, 1, 1, 0]), Row([0, 1, 1, 0, 1]), Row([1, 0, 1, 0, 1]), Row([0, 1, 1, 1, 1])])

@op("residual_norm", x=Draw(4, 5), f=Draw(4, 5), w=Draw(5), b=Draw(5), keep=KEEP, rate=0.25, eps=0.01)
def residual_norm(x, f, w, b, keep, rate, eps):
    """ds_i = r (g_i - mean(g) - n_i mean(g n)) dw_i = Σ_rows dy_i n_i, db_i = Σ_rows dy_i
    dx_i = ds_i, df_i = ds_i k_i / (1 - ρ)"""
    n, r = map(Row, zip(*(norm(row, eps) for row in x + f * keep / (1 - rate))))

    def backward(dy):
        ds = by_row(lambda g, n, r: r * (g - mean(g) - n * mean(g * n)), dy * w, n, r)
        return dict(dx=ds, df=ds * keep / (1 - rate), dw=sum(dy * n), db=sum(dy))
    return n * w + b, backward

@op("dropout", x=Draw(4, 5), keep=KEEP, rate=0.25)
def dropout(x, keep, rate):
    """dx_i = dy_i k_i / (1 - ρ)"""
    return x * keep / (1 - rate), lambda dy: dict(dx=dy * keep / (1 - rate))

@op("tanh", x=Draw(6))
def tanh_of(x):
    """dx = dy (1 - y) (1 + y)"""
    y = tanh(x)
    return y, lambda dy: dict(dx=dy * (1 - y) * (1 + y))

# φ and Φ: density and distribution function of the normal distribution. Φ is correct to first order in x - real(x).
φ = one_by_one(lambda x: exp(-x * x / 2) / math.sqrt(2 * math.pi))
Φ = one_by_one(lambda x: (1 + math.erf(real(x) / math.sqrt(2))) / 2 + φ(real(x)) * (x - real(x)))

@op("gelu", x=Draw(8, spread=2))
def gelu(x):
    """y'(x) = Φ(x) + x φ(x)"""
    return x * Φ(x), lambda dy: dict(dx=dy * (Φ(x) + x * φ(x)))

@op("gelu, tanh", x=Draw(8, spread=2))
def gelu_tanh(x):
    """y'(x) = (1 + t)/2 + x/2 (1 - t²) k (1 + 3 · 0.044715 x²)"""
    k = math.sqrt(2 / math.pi)
    t = tanh(k * (x + 0.044715 * x * x * x))
    return x / 2 * (1 + t), lambda dy: dict(dx=dy * ((1 + t) / 2 + x / 2 * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x)))

def silu_and_slope(x):
    l = 1 / (1 + exp(-x))
    return x * l, l * (1 + x * (1 - l))

@op("silu", x=Draw(8, spread=2))
def silu(x):
    """y'(x) = l + x l (1 - l) = l (1 + x (1 - l))"""
    y, slope = silu_and_slope(x)
    return y, lambda dy: dict(dx=dy * slope)

@op("squared_relu", x=Draw(8, spread=2))
def squared_relu(x):
    """dx = 2 max(x, 0) dy"""
    top = positive(x) * x
    return top * top, lambda dy: dict(dx=2 * top * dy)

@op("glu, silu", x=Draw(3, 8, spread=2), g=silu_and_slope)
@op("glu, gelu", x=Draw(3, 8, spread=2), g=lambda a: (a * Φ(a), Φ(a) + a * φ(a)))
@op("glu, gelu_tanh", x=Draw(3, 8, spread=2), g=lambda a: (gelu_tanh(a)[0], gelu_tanh(a)[1](0 * a + 1)["dx"]))
def glu(x, g):
    """da_i = dy_i b_i g'(a_i), db_i = dy_i g(a_i)"""
    a, b = (Row(row[at:at + 4] for row in x) for at in (0, 4))
    y, slope = g(a)
    return y * b, lambda dy: dict(dx=by_row(Row.__or__, dy * b * slope, dy * y))

@op("gelu_linear", "gelu", u=Draw(3, 4), w=Draw(2, 4), b=Draw(2))
def gelu_linear(u, w, b):
    """backward: du = gelu'(u) * (dy W_2), dW_2 = dy^T a, db_2 = Σ dy"""
    a = u * Φ(u)
    return a @ w.T + b, lambda dy: dict(du=(Φ(u) + u * φ(u)) * (dy @ w), dw=dy.T @ a, db=sum(dy))

@op("scale_columns", x=Draw(3, 4), w=Draw(4))
def scale_columns(x, w):
    """dx_nc = dy_nc w_c, dw_c = sum_n dy_nc x_nc"""
    return x * w, lambda dy: dict(dx=dy * w, dw=sum(dy * x))

@op("add", a=Draw(2, 3), b=Draw(2, 3))
def add(a, b):
    """da = dy, db = dy"""
    return a + b, lambda dy: dict(da=dy, db=dy)


# Tokens and positions

@op("embedding", w=Draw(4, 3), ids=[2, 0, 2, 3, 2])
def embedding(w, ids):
    """dw = E^T dy, dw_v = Σ_n dy_n over the rows n with ids_n = v"""
    def backward(dy):
        return dict(dw=Row(sum((dy[n] for n, id in enumerate(ids) if id == v), 0 * w[v]) for v in range(len(w))))
    return Row(w[v] for v in ids), backward

def turned(x, positions, columns, D=4, base=10000):
    """R_p x of each row: the heads of D numbers of its first columns, turned."""
    y = x * 1
    for to, p in zip(y, positions):
        for i in range(0, columns, 2):
            c, s = math.cos(p * base ** (-(i % D) / D)), math.sin(p * base ** (-(i % D) / D))
            to[i], to[i + 1] = to[i] * c - to[i + 1] * s, to[i + 1] * c + to[i] * s
    return y

@op("rotary", x=Draw(3, 10), positions=Row([0, 7, 3]), columns=8)
def rotary(x, positions, columns):
    """dx = R_(-p) dy"""
    return turned(x, positions, columns), lambda dy: dict(dx=turned(dy, -positions, columns))

@op("linear_rotary", "rotary", x=Draw(3, 3), w=Draw(6, 3), b=Draw(6), positions=Row([2, 7, 0]), columns=4)
def linear_rotary(x, w, b, positions, columns):
    """du = R^(-1) dy, dx = du W, dW = du^T x, db = Σ du"""
    def backward(dy):
        du = turned(dy, -positions, columns)
        return dict(dx=du @ w, dw=du.T @ x, db=sum(du))
    return turned(x @ w.T + b, positions, columns), backward

@op("query_key_value", "rotary", x=Draw(3, 3), wq=Draw(4, 3), bq=Draw(4), wkv=Draw(8, 3), bkv=Draw(8),
    positions=Row([2, 7, 0]), columns=4)
def query_key_value(x, wq, bq, wkv, bkv, positions, columns):
    """dx = du_q W_q + du_kv W_kv"""
    def backward(dq, dkv):
        du_q, du_kv = turned(dq, -positions, 4), turned(dkv, -positions, columns)
        return dict(dx=du_q @ wq + du_kv @ wkv, dwq=du_q.T @ x, dbq=sum(du_q), dwkv=du_kv.T @ x, dbkv=sum(du_kv))
    return turned(x @ wq.T + bq, positions, 4), turned(x @ wkv.T + bkv, positions, columns), backward

@op("gather_rows", "rows", x=Draw(5, 2), rows=[3, 0, 4])
def gather_rows(x, rows):
    """dx_n = dy_m where n is rows_m, 0 elsewhere"""
    def backward(dy):
        return dict(dx=Row(dy[rows.index(n)] if n in rows else 0 * x[n] for n in range(len(x))))
    return Row(x[n] for n in rows), backward

@op("replace_rows", "rows", x=Draw(4, 2), u=Draw(2, 2), which=[-1, 1, -1, 0])
def replace_rows(x, u, which):
    """dx_n = dy_n where which_n < 0, 0 where the row was replaced
    du_b = dy_n of the row n that it replaced"""
    def backward(dy):
        return dict(dx=Row(dy[n] * (b < 0) for n, b in enumerate(which)), du=Row(dy[which.index(b)] for b in range(len(u))))
    return Row(u[b] if b >= 0 else x[n] for n, b in enumerate(which)), backward

@op("max_rows", "rows", x=Draw(5, 3), first=[0, 2, 2, 5])
def max_rows(x, first):
    """dx_nc = dy_bc at the lowest row that has the maximum, 0 elsewhere"""
    columns, parts = range(len(x[0])), [range(*ends) for ends in zip(first, first[1:])]
    top = [[max(part, key=lambda n: real(x[n][c]), default=None) for c in columns] for part in parts]   # the lowest of equals
    number = lambda dy, n, c: sum(dy_b[c] for dy_b, tops in zip(dy, top) if tops[c] == n)
    return (Row(Row(0 if n is None else x[n][c] for c, n in enumerate(tops)) for tops in top),
            lambda dy: dict(dx=Row(Row(number(dy, n, c) for c in columns) for n in range(len(x)))))


# Attention, of one head unless it says more. What a query sees is a list of keys.

def score(q, k):
    return q @ k / math.sqrt(len(q))

SEEN = dict(q=Draw(4, 3), k=Draw(5, 3), v=Draw(5, 3), sees=[[0, 1, 4], [], [2], [0, 1, 2, 3, 4]])

@op("attention", keep=KEEP * 0 + 1, **SEEN)
@op("attention, dropout", keep=KEEP / 0.75, **SEEN)
def attention(q, k, v, sees, keep):
    """dv_j += p_j κ_j dy and dp_j = κ_j dy . v_j
    ds_j = p_j (dp_j - Δ)
    Δ = Σ_l p_l (dy . v_l) = dy . (Σ_l p_l v_l) = dy . y
    dq = Σ_j ds_j k_j / sqrt(D), dk_j += ds_j q / sqrt(D)"""
    p = [dict(zip(seen, softmax(Row(score(q_i, k[j]) for j in seen)))) if seen else {} for q_i, seen in zip(q, sees)]
    y = Row(sum((p_i[j] * keep_i[j] * v[j] for j in p_i), 0 * v[0]) for p_i, keep_i in zip(p, keep))

    def backward(dy):
        dq, dk, dv = 0 * q, 0 * k, 0 * v
        for i, p_i in enumerate(p):
            delta = dy[i] @ y[i]
            for j in p_i:
                dv[j] += p_i[j] * keep[i][j] * dy[i]
                dp_j = keep[i][j] * (dy[i] @ v[j])
                ds_j = p_i[j] * (dp_j - delta)
                dq[i] += ds_j * k[j] / math.sqrt(len(k[j]))
                dk[j] += ds_j * q[i] / math.sqrt(len(k[j]))
        return dict(dq=dq, dk=dk, dv=dv)
    return y, backward

@op("attention, grouped heads", q=Draw(4, 12), k=Draw(5, 6), v=Draw(5, 6), sees=SEEN["sees"], keep=KEEP / 0.75, H=4, G=2)
def grouped_attention(q, k, v, sees, keep, H, G):
    """dk_j^g = Σ_h (Σ ds_j q / sqrt(D))^h, dv_j^g = Σ_h (Σ p_j dy)^h over the heads h that read g"""
    D, readers = len(q[0]) // H, H // G
    of_head = lambda x, h: Row(row[h * D:(h + 1) * D] for row in x)
    beside = lambda parts: Row(Row(n for part in row for n in part) for row in zip(*parts))
    ys, backwards = zip(*(attention(of_head(q, h), of_head(k, h // readers), of_head(v, h // readers), sees, keep)
                          for h in range(H)))

    def backward(dy):
        heads = [backward(of_head(dy, h)) for h, backward in enumerate(backwards)]
        group = lambda name, g: sum(heads[h][name] for h in range(g * readers, (g + 1) * readers))
        return dict(dq=beside([head["dq"] for head in heads]), dk=beside([group("dk", g) for g in range(G)]),
                    dv=beside([group("dv", g) for g in range(G)]))
    return beside(ys), backward

def found(q, rotations, chunk, causal):
    """P_i of the rows of a segment: of bucket_i = argmax([q_i R; -q_i R]), sorted by (bucket, place) and cut into chunks."""
    sets, rows = [set() for _ in q], range(len(q))
    for R in rotations:
        hashed = [real(q_i @ R | -(q_i @ R)) for q_i in q]
        bucket = [h.index(max(h)) for h in hashed]
        order = sorted(rows, key=lambda i: bucket[i])
        first = [order.index(bucket.index(bucket[i])) if causal else 0 for i in rows]
        chunk_of = [(order.index(i) - first[i]) // chunk for i in rows]
        for i in rows:
            sets[i] |= {j for j in rows if j != i and bucket[i] == bucket[j] and chunk_of[i] - chunk_of[j] in (0, 1) and
                        not (causal and j > i)}
    return [sorted(P) or [i] for i, P in enumerate(sets)]

HASHED = dict(q=Draw(9, 3), k=Draw(9, 3), v=Draw(9, 3), f=Draw(9, 9, moves=False), rotations=Draw(2, 3, 2, moves=False), chunk=2)

@op("lsh_attention", causal=False, **HASHED)
@op("lsh_attention, causal", causal=True, **HASHED)
def lsh_attention(q, k, v, f, rotations, chunk, causal):
    """p_ij = exp(q_i . k_j / sqrt(D) - lse_i) ds_ij = p_ij dy_i . (f_ij v_j - y_i)
    dq_i = Σ_j ds_ij k_j / sqrt(D), dk_j = Σ_i ds_ij q_i / sqrt(D), dv_j = Σ_i p_ij f_ij dy_i"""
    P = found(q, rotations, chunk, causal)
    lse = [log_sum_exp(Row(score(q_i, k[j]) for j in P_i)) for q_i, P_i in zip(q, P)]
    p = lambda i, j: exp(score(q[i], k[j]) - lse[i])
    y = Row(sum(p(i, j) * f[i][j] * v[j] for j in P_i) for i, P_i in enumerate(P))

    def backward(dy):
        dq, dk, dv = 0 * q, 0 * k, 0 * v
        for i, j in [(i, j) for i, P_i in enumerate(P) for j in P_i]:
            ds = p(i, j) * (dy[i] @ (f[i][j] * v[j] - y[i]))
            dq[i] += ds * k[j] / math.sqrt(len(k[j]))
            dk[j] += ds * q[i] / math.sqrt(len(k[j]))
            dv[j] += p(i, j) * f[i][j] * dy[i]
        return dict(dq=dq, dk=dk, dv=dv)
    return y, backward

@op("local_lambda", q=Draw(4, 3), e=Draw(5, 3), v=Draw(5, 3), sees=[[0, 1], [], [1, 2, 3, 4], [0, 3]], reach=2)
def local_lambda(q, e, v, sees, reach):
    """so with a_no = v_(n+o) . G_n
    dq_n = Σ_o a_no e_o, de_o = Σ_n a_no q_n, dv_j = Σ_(n,o: j = n+o) (e_o . q_n) G_n"""
    pairs = [(n, o + reach, n + o) for n in range(len(q)) for o in range(-reach, reach + 1) if n + o in sees[n]]
    y = 0 * q
    for n, o, j in pairs:
        y[n] += (e[o] @ q[n]) * v[j]

    def backward(G):
        dq, de, dv = 0 * q, 0 * e, 0 * v
        for n, o, j in pairs:
            asked = v[j] @ G[n]
            dq[n] += asked * e[o]
            de[o] += asked * q[n]
            dv[j] += (e[o] @ q[n]) * G[n]
        return dict(dq=dq, de=de, dv=dv)
    return y, backward

@op("head_scores", x=Draw(3, 4), p=Draw(2, 4), s=0.7)
def head_scores(x, p, s):
    """dx_nd = Σ_r dy_nr (s p_rd), dp_rd = s Σ_n dy_nr x_nd"""
    return s * (x @ p.T), lambda dy: dict(dx=dy @ (s * p), dp=s * (dy.T @ x))

def feature_map(t, x, s, kind):
    """| positive, hyperbolic | dt_r = dy_r - dy_(R+r) (the second for hyperbolic only) |
    | trigonometric, rfa | (cos t)' = -sin t, (sin t)' = cos t |
    | relu | the slope is [t > 0] | | softplus | the slope is 2^t / (1 + 2^t) |
    | elu | the slope is 1 where t > 0, else exp(t) |
    dx = s² x dh, dh = -Σ dy or dh = Σ dy y"""
    R, h, one, two_t = len(t), s * s * (x @ x) / 2, 0 * t + 1, exp(math.log(2) * t)
    y, slope = dict(
        positive=lambda: (t - h - math.log(R) / 2, one),
        hyperbolic=lambda: ((t - h | -t - h) - math.log(2 * R) / 2, one | -one),
        trigonometric=lambda: (exp(h) / math.sqrt(R) * (cos(t) | sin(t)), exp(h) / math.sqrt(R) * (-sin(t) | cos(t))),
        rfa=lambda: ((sin(t) | cos(t)) / math.sqrt(R), (cos(t) | -sin(t)) / math.sqrt(R)),
        relu=lambda: (positive(t) * t + 0.001, positive(t)),
        softplus=lambda: (log(1 + two_t) / math.log(2), two_t / (1 + two_t)),
        elu=lambda: (positive(t) * t + (1 - positive(t)) * (exp(t) - 1) + 1, positive(t) + (1 - positive(t)) * exp(t)))[kind]()

    def backward(dy):
        dt = dy * slope
        dh = -sum(dy) if kind in ("positive", "hyperbolic") else sum(dy * y) if kind == "trigonometric" else 0
        return dict(dt=dt[:R] + dt[R:] if len(dt) > R else dt, dx=s * s * x * dh)
    return y, backward

for kind in "positive hyperbolic trigonometric rfa relu softplus elu".split():
    op("feature_map, " + kind, t=Draw(5), x=Draw(3), s=0.8, kind=kind)(feature_map)

# Query i has seen the first seen_i keys. Each pair of a query and a key is weighed here, without a state.
def state_attention(x, s, k, v, seen, pack, read, a=None, floor=0):
    """attend: db_r = p_r (u_r - Σ_t p_t u_t), dx = Σ_r db_r K_r / sqrt(D)
    kernel: dx_r = p_r (u_r - y . G) (log features; of a sum: n_r / (Σ_t x_t n_t) (u_r - y . G))
    linear: dx_r = u_r
    dv_j = Σ_r e^(s_jr) A_r, dk_j = Σ_r e^(s_jr) B_r, ds_jr = e^(s_jr) (A_r . v_j + B_r . k_j - L_r)
    | attend | p_r u_r + db_r b_r | | kernel | p_r u_r - p_r (u_r - y . G) = p_r (y . G) | | linear | p_r u_r |
    For sums e^(-z) is 1 / n_r, and e^s is s in dv and dk, 1 in ds; where n_r is the number of keys, L is 0.
    da_j = (1 - g_j) d log g_j - g_j c_j
    y . G is left out of dx and of ℓ, and such a query adds y . G to the sum"""
    exponential, counted, root = pack == "exponential", pack == "sum" and read != "kernel", math.sqrt(len(k[0]))
    g = 1 / (1 + exp(-a)) if a else None
    gates = lambda i, j: (1 - g[j]) * math.prod(g[j + 1:seen[i]]) if g else 1
    weight = lambda i, j: gates(i, j) * (exp(s[j]) if exponential else s[j])

    def reading(i):
        """n and V of the slots, p, whether the sum is held, and of u the adjoint dx, db, lost."""
        w = Row(weight(i, j) for j in range(seen[i]))
        n = 0 * s[0] + seen[i] if counted else sum(w)
        K, V = (((w.T @ of[:seen[i]]).T / n).T for of in (k, v))
        if read == "attend":
            b = K @ x[i] / root
            p = softmax(b)
            db = lambda u: p * (u - p @ u)
            return n, V, p, False, lambda u: (db(u) @ K / root, db(u), p * u + db(u) * b)
        if read == "linear":
            return n, V, x[i], False, lambda u: (u, 0 * u, x[i] * u)
        if exponential:
            p = softmax(x[i] + log(n))
            return n, V, p, False, lambda u: (p * (u - p @ u), 0 * u, p * (p @ u))
        total = x[i] @ n
        held = abs(real(total)) < floor
        total = math.copysign(floor, real(total)) if held else total
        p = x[i] * n / total
        return n, V, p, held, lambda u: (n / total * (u - (1 - held) * (p @ u)), 0 * u, (1 - held) * p * (p @ u))

    def backward(dy):
        dx, ds, dk, dv, held_sums = 0 * x, 0 * s, 0 * k, 0 * v, 0 * s.T[0]
        for i, G in enumerate(dy):
            if not seen[i]:
                continue
            n, V, p, held, adjoint = reading(i)
            dx[i], db, lost = adjoint(V @ G)
            for j in range(seen[i]):
                dv[j] += weight(i, j) / n @ p * G
                dk[j] += weight(i, j) / n @ db * x[i] / root
                slope = weight(i, j) if exponential else gates(i, j)
                ds[j] += slope / n * (p * (v[j] @ G) + db * (x[i] @ k[j]) / root - (0 if counted else lost))
                held_sums[j] += held * (p @ (V @ G))
        if not g:
            return dict(dx=dx, ds=ds, dk=dk, dv=dv)
        c = by_row(Row.__matmul__, ds, s)
        dlog_g = Row(held_sums[j] - sum(c[j:]) for j in range(len(c)))
        return dict(dx=dx, ds=ds, dk=dk, dv=dv, da=(1 - g) * dlog_g - g * c)
    return Row(reading(i)[2] @ reading(i)[1] if seen[i] else 0 * v[0] for i in range(len(x))), backward

PACKED = dict(s=Draw(5, 3), k=Draw(5, 3), v=Draw(5, 2), seen=[3, 0, 5, 4])
POSITIVE = dict(PACKED, x=Draw(4, 3, around=3, spread=0.5), s=Draw(5, 3, around=3, spread=0.5), pack="sum", read="kernel")
for read in "attend", "linear", "kernel":
    op("state_attention, exponential, " + read, x=Draw(4, 3), pack="exponential", read=read, **PACKED)(state_attention)
for read in "attend", "linear":
    op("state_attention, sum, " + read, x=Draw(4, 3), pack="sum", read=read, **PACKED)(state_attention)
op("state_attention, sum, kernel", **POSITIVE)(state_attention)
op("state_attention, gates", a=Draw(5), **POSITIVE)(state_attention)
op("state_attention, gates, a sum at its floor", a=Draw(5), floor=24, **POSITIVE)(state_attention)

@op("sinkhorn", q=Draw(5, 3), k=Draw(5, 3), v=Draw(5, 2), block=2, K=3, temperature=0.75)
def sinkhorn(q, k, v, block, K, temperature):
    """dK_v[t] = Σ_u w_uv dK'_u[t], d log S_uv = Σ_t w_uv (g_v - Σ_v' w_uv' g_v')
    dR = G, dr^K_u = -Σ_v G_uv, dc^K_v = -Σ_u G_uv
    P_uv = exp(R_uv - c^k_v - r^k_u), dR_uv += dr^k_u P_uv, dc^k_v -= Σ_u dr^k_u P_uv
    Q_uv = exp(R_uv - r^(k-1)_u - c^k_v), dR_uv += dc^k_v Q_uv, dr^(k-1)_u -= Σ_v dc^k_v Q_uv
    dq_u = Σ_v dR_uv k_v / (sqrt(D) τ), dk_v = Σ_u dR_uv q_u / (sqrt(D) τ)"""
    blocks = [range(len(q))[first:first + block] for first in range(0, len(q), block)]
    mean_q, mean_k = (Row(mean(of[rows[0]:rows[-1] + 1]) for rows in blocks) for of in (q, k))
    sharp, shares = 1 / (math.sqrt(len(q[0])) * temperature), lambda rows: by_row(lambda row: row / sum(row), rows)
    R = sharp * (mean_q @ mean_k.T)
    S = exp(R)
    for _ in range(K):
        S = shares(S / sum(S))
    rows_t = [[rows[t] for rows in blocks if t < len(rows)] for t in range(block)]
    w = [shares(Row(row[:len(rows)] for row in S)) for rows in rows_t]    # weights of the blocks that have a row t
    picked = lambda of: Row(Row(of[n] for n in rows) for rows in rows_t)
    sorted_rows = lambda of: Row(w_t @ of_t for w_t, of_t in zip(w, picked(of)))

    def backward(dK, dV):
        dk, dv, G, r, c = 0 * k, 0 * v, 0 * R, [0 * R[0]], [None]
        for rows, w_t, K_t, V_t, dK_t, dV_t in zip(rows_t, w, picked(k), picked(v), dK, dV):
            for n, dk_n, dv_n in zip(rows, w_t.T @ dK_t, w_t.T @ dV_t):
                dk[n], dv[n] = dk_n, dv_n
            for u, (w_u, g) in enumerate(zip(w_t, dK_t @ K_t.T + dV_t @ V_t.T)):
                G[u] += w_u * (g - w_u @ g) | [0] * (len(S) - len(rows))
        for _ in range(K):
            c.append(by_row(log_sum_exp, R.T - r[-1]))
            r.append(by_row(log_sum_exp, R - c[-1]))
        dR, dr, dc = G, -sum(G.T), -sum(G)
        for step in range(K, 0, -1):
            P, Q = (exp((R - c[step]).T - of).T for of in (r[step], r[step - 1]))
            dR, dc = dR + (dr * P.T).T, dc - dr @ P
            dR, dr, dc = dR + dc * Q, -(Q @ dc), 0 * dc
        to_rows = lambda d: Row(sharp * row / len(rows) for row, rows in zip(d, blocks) for _ in rows)
        return dict(dq=to_rows(dR @ mean_k), dk=dk + to_rows(dR.T @ mean_q), dv=dv)
    return sorted_rows(k), sorted_rows(v), backward


@op("sinkhorn, causal", "sinkhorn", q=Draw(7, 3), k=Draw(7, 3), v=Draw(7, 2), block=2, K=3, temperature=0.75)
def sinkhorn_causal(q, k, v, block, K, temperature):
    """q_u = mean of the queries up to the first row of block u
    c^k_uv = log Σ_(v<i<=u) exp(R_iv - r^(k-1)_i), r^k_u = log Σ_(v<u) exp(R_uv - c^k_uv)
    T_iv = Σ_(u>=i) G_uv exp(c^k_iv - c^k_uv), Q_iv = T_iv exp(R_iv - r^(k-1)_i - c^k_iv)
    dR_iv += Q_iv, dr^(k-1)_i = -Σ_v Q_iv"""
    U = (len(q) + block - 1) // block
    pairs = [(u, v) for u in range(U) for v in range(u)]
    sharp = 1 / (math.sqrt(len(q[0])) * temperature)
    mean_q = [mean(q[:u * block + 1]) for u in range(U)]
    mean_k = [mean(k[v * block:v * block + block]) for v in range(U)]
    R = {(u, v): sharp * (mean_q[u] @ mean_k[v]) for u, v in pairs}
    r, c = [{u: 0 for u in range(U)}], [None]
    for _ in range(K):
        c.append({(u, v): log_sum_exp(Row(R[i, v] - r[-1][i] for i in range(v + 1, u + 1))) for u, v in pairs})
        r.append({u: log_sum_exp(Row(R[u, v] - c[-1][u, v] for v in range(u))) if u else 0 for u in range(U)})
    S = {(u, v): exp(R[u, v] - c[K][u, v] - r[K][u]) for u, v in pairs}
    rows = [(u, t) for u in range(1, U) for t in range(block)]
    sorted_rows = lambda of: Row(sum(S[u, v] * of[v * block + t] for v in range(u)) for u, t in rows)

    def backward(dK, dV):
        dq, dk, dv, dR = 0 * q, 0 * k, 0 * v, {pair: 0 for pair in pairs}
        for (u, t), dK_t, dV_t in zip(rows, dK, dV):
            for w in range(u):
                n = w * block + t
                dk[n] += S[u, w] * dK_t
                dv[n] += S[u, w] * dV_t
                dR[u, w] += S[u, w] * (dK_t @ k[n] + dV_t @ v[n])
        dr, dc = {u: -sum(dR[u, w] for w in range(u)) for u in range(1, U)}, {pair: -g for pair, g in dR.items()}
        for step in range(K, 0, -1):
            for u, w in pairs:
                P = exp(R[u, w] - c[step][u, w] - r[step][u])
                dR[u, w] += dr[u] * P
                dc[u, w] -= dr[u] * P
            T = {(i, w): sum(dc[u, w] * exp(c[step][i, w] - c[step][u, w]) for u in range(i, U)) for i, w in pairs}
            Q = {(i, w): T[i, w] * exp(R[i, w] - r[step - 1][i] - c[step][i, w]) for i, w in pairs}
            dR = {pair: dR[pair] + Q[pair] for pair in pairs}
            dr, dc = {i: -sum(Q[i, w] for w in range(i)) for i in range(1, U)}, {pair: 0 for pair in pairs}
        for u, w in pairs:
            for n in range(u * block + 1):
                dq[n] += dR[u, w] * sharp * mean_k[w] / (u * block + 1)
            for n in range(w * block, w * block + block):
                dk[n] += dR[u, w] * sharp * mean_q[u] / block
        return dict(dq=dq, dk=dk, dv=dv)
    return sorted_rows(k), sorted_rows(v), backward


# Latents, of one row or of several

@op("normalise", x=Draw(4))
def normalise(x):
    """dx = r (dy - (dy.y) y)"""
    r = 1 / sqrt(x @ x)
    y = x * r
    return y, lambda dy: dict(dx=r * (dy - (dy @ y) * y))

@op("normalise, held", x=Draw(4, spread=1e-8))
def normalise_held(x):
    """If |x| <= 10^(-6), the factor is held at 10^6. The op is then linear, y = 10^6 x, and its gradient is dx = 10^6 dy"""
    size = sqrt(x @ x)
    return x / (size if real(size) > 1e-6 else 1e-6), lambda dy: dict(dx=1e6 * dy)

@op("vmf_sample", mu=Draw(4), w=Draw(spread=0.3), e=Draw(4, moves=False))
def vmf_sample(mu, w, e):
    """h = (c/|u|) (g - (g . ν) ν)
    dμ = w g - s h - (h . μ) e
    dw = g . μ - w / c g . ν"""
    s = e @ mu
    u = e - s * mu
    size, c = sqrt(u @ u), sqrt(1 - w * w)
    nu = u / size

    def backward(g):
        h = c / size * (g - (g @ nu) * nu)
        return dict(dmu=w * g - s * h - (h @ mu) * e, dw=g @ mu - w / c * (g @ nu))
    return w * mu + c * nu, backward

def integral(f, a, b):
    """By tanh-sinh quadrature, to 1e-13 where f is smooth inside."""
    points = [(math.pi / 2 * math.sinh(i / 16), math.pi / 32 * math.cosh(i / 16)) for i in range(-48, 49)]
    return (b - a) / 2 * sum(width / math.cosh(t) ** 2 * f((a + b) / 2 + (b - a) / 2 * math.tanh(t)) for t, width in points)

@op("vmf_sample, learned kappa", kappa=Draw(around=4), s=lambda v: 1 - v, w=0.3, Z=6)
@op("vmf_sample, learned kappa of power-spherical", kappa=Draw(around=4), s=lambda v: math.log(2) - log(1 + v), w=0.3, Z=6)
def learned_kappa(kappa, s, w, Z):
    """dw / dκ = -dF/dκ / f(w) f the density of w
    dF / dκ = -∫_(-1)^w f(v) (s(v) - s¯) dv where f(v) ~ exp(-κ s(v)) (1 - v^2)^((Z-3)/2)
    dKL / dκ = κ Var(s)"""
    def densities(kappa):
        weight = lambda v: exp(-kappa * s(v)) * (1 - v * v) ** ((Z - 3) / 2)
        mass = integral(weight, -1, 1)
        return mass, lambda v: weight(v) / mass
    (mass, f), (_, f_now) = densities(kappa), densities(real(kappa))
    share = integral(f_now, -1, w)              # w changes with kappa, so that F(w, kappa) stays equal to `share`
    for _ in range(3):
        w = w - (integral(f, -1, w) - share) / f(w)
    E_s = integral(lambda v: f(v) * s(v), -1, 1)
    kl = -kappa * E_s - log(mass) + log(densities(0)[0])

    def backward(dw, dkl):
        dF = -integral(lambda v: f(v) * (s(v) - E_s), -1, w)
        return dict(dkappa=dw * -dF / f(w) + dkl * kappa * integral(lambda v: f(v) * (s(v) - E_s) ** 2, -1, 1))
    return w, kl, backward

def clamped(l):
    """l held in [-8, 8], and whether it is inside."""
    inside = positive(8 + l) * positive(8 - l)
    return inside * l + (1 - inside) * 8 * (2 * positive(l) - 1), inside

@op("gaussian_sample", "gaussian", mu=Draw(9), l=Draw(9, spread=8), e=Draw(9, moves=False))
def gaussian_sample(mu, l, e):
    """δz = δμ + 1 / 2 e exp(l/2) δl, dμ = dz, dl = 1 / 2 dz e exp(l/2)
    Outside the clamp, l does not affect the result: dl = 0."""
    l, inside = clamped(l)
    return mu + exp(l / 2) * e, lambda dz: dict(dmu=dz, dl=inside * dz * e * exp(l / 2) / 2)

@op("gaussian_kl", "gaussian", mu=Draw(9), l=Draw(9, spread=8))
def gaussian_kl(mu, l):
    """dμ = dkl μ, dl = 1 / 2 dkl (exp l - 1)"""
    l, inside = clamped(l)
    return sum(mu * mu + exp(l) - l - 1) / 2, lambda dkl: dict(dmu=dkl * mu, dl=inside * dkl * (exp(l) - 1) / 2)

@op("gaussian_kl, prior", "gaussian", mu=Draw(9), l=Draw(9, spread=8), m=Draw(9), p=Draw(9, spread=8))
def gaussian_kl_of_prior(mu, l, m, p):
    """dμ = dkl a exp(-p), dl = 1 / 2 dkl (exp(l - p) - 1)
    dm = -dμ, dp = 1 / 2 dkl (1 - a^2 exp(-p) - exp(l - p))"""
    (l, l_inside), (p, p_inside), a = clamped(l), clamped(p), mu - m
    return (a * a * exp(-p) + exp(l - p) - (l - p) - 1) / 2, lambda dkl: dict(
        dmu=dkl * a * exp(-p), dl=l_inside * dkl * (exp(l - p) - 1) / 2,
        dm=-dkl * a * exp(-p), dp=p_inside * dkl * (1 - a * a * exp(-p) - exp(l - p)) / 2)

@op("at_least", "gaussian", x=Draw(6), least=0.1)
def at_least(x, least):
    """dx is dy where x is above least, and 0 elsewhere"""
    above = positive(x - least)
    return above * x + (1 - above) * least, lambda dy: dict(dx=above * dy)

@op("coupling", "flow", a=Draw(3), b=Draw(2), r=Draw(2), t=Draw(2))
def coupling(a, b, r, t):
    """da = dy_a, db = dy_b exp(s), dt = dy_b, dr = (1 - (s/2)²) (dy_b b exp(s) + dlog_det)"""
    s = 2 * tanh(r / 2)
    return a, b * exp(s) + t, sum(s), lambda dy_a, dy_b, dlog_det: dict(
        da=dy_a, db=dy_b * exp(s), dt=dy_b, dr=(1 - s / 2 * s / 2) * (dy_b * b * exp(s) + dlog_det))

def det(W):
    return sum((-1) ** j * W[0][j] * det(minor(W, 0, j)) for j in range(len(W))) if W else 1

def minor(W, i, j):
    return Row(row[:j] | row[j + 1:] for row in W[:i] | W[i + 1:])

@op("log_det", "flow", W=Draw(3, 3))
def log_det(W):
    """dW = dlog_det (W^(-1))^T"""
    inverse_T = Row(Row((-1) ** (i + j) * det(minor(W, i, j)) / det(W) for j in range(3)) for i in range(3))
    return log(det(W) * (2 * positive(det(W)) - 1)), lambda dlog_det: dict(dW=dlog_det * inverse_T)

@op("actnorm", "flow", x=Draw(3, 4), s=Draw(4), b=Draw(4))
def actnorm(x, s, b):
    """dx = dy s, ds = Σ dy x + dlog_det / s, db = Σ dy"""
    return x * s + b, sum(log(s * (2 * positive(s) - 1))), lambda dy, dlog_det: dict(
        dx=dy * s, ds=sum(dy * x) + dlog_det / s, db=sum(dy))

@op("lu_matrix", "flow", M=Draw(3, 3))
def lu_matrix(M):
    """dL = G V^T below the diagonal, dV = L^T G on and above it, ds_k also has dlog_det / s_k"""
    L = Row(Row(M[i][j] if j < i else 1.0 * (i == j) for j in range(3)) for i in range(3))
    V = Row(Row(M[i][j] if j >= i else 0.0 for j in range(3)) for i in range(3))
    product, s = L @ V, Row(M[k][k] for k in range(3))
    W = Row([product[1], product[2], product[0]])  # P

    def backward(dW, dlog_det):
        G = Row([dW[2], dW[0], dW[1]])
        dL, dV = G @ V.T, L.T @ G
        return dict(dM=Row(Row(dL[i][j] if j < i else dV[i][j] + (dlog_det / s[i] if i == j else 0) for j in range(3))
                           for i in range(3)))
    return W, sum(log(s * (2 * positive(s) - 1))), backward

@op("flow_kl", "flow", l=Draw(3, 4, spread=5), u=Draw(3, 4), log_dets=Draw(3), log_det=Draw(), e=Draw(3, 4, moves=False))
def flow_kl(l, u, log_dets, log_det, e):
    """du = dkl u, dl = -dkl / 2, dΛ_n = -dkl, dΛ = -Σ dkl"""
    l, inside = clamped(l)
    return by_row(sum, u * u - e * e - l) / 2 - log_dets - log_det, lambda dkl: dict(
        du=by_row(Row.__mul__, u, dkl), dl=by_row(Row.__mul__, inside, -dkl / 2), dlog_dets=-dkl, dlog_det=-sum(dkl))

@op("straight_through", "codes", y=Draw(4), q=Draw(4, moves=False))
def straight_through(y, q):
    """is y + (q - y) with q - y held still
    gives `z = q` forward and `dy = dz` backward"""
    return y + (q - real(y)), lambda dz: dict(dy=dz)

@op("distance", "codes", y=Draw(4), q=Draw(4, moves=False), weight=0.3)
def distance(y, q, weight):
    """dy = 2 λ ddistance (y - q)"""
    return weight * ((y - q) @ (y - q)), lambda ddistance: dict(dy=2 * weight * ddistance * (y - q))


# Losses

TARGETS = dict(h=Draw(4, 3), w=Draw(5, 3), b=Draw(5), targets=[2, 0, 2, 4], weights=Row([0.5, 0.2, 0, 0.3]))

@op("cross_entropy", e=0, **TARGETS)
@op("cross_entropy, smoothed", e=0.1, **TARGETS)
def cross_entropy(h, w, b, targets, weights, e):
    """q_v = (1 - e) [v = t] + e/V
    da_v = (p_v - q_v) ω
    h^1 = Σ_v da_v w_v, w^1_v = Σ_n da_nv h_n, b^1_v = Σ_n da_nv
    dh = dtotal h^1, dw = dtotal w^1, db = dtotal b^1"""
    V, a = len(b), h @ w.T + b
    lse = by_row(log_sum_exp, a)
    loss = Row(lse_n - (1 - e) * a_n[t] - e / V * sum(a_n) for lse_n, a_n, t in zip(lse, a, targets))

    def backward(dtotal):
        p, q = by_row(softmax, a), Row(Row((1 - e) * (v == t) + e / V for v in range(V)) for t in targets)
        da = by_row(Row.__mul__, p - q, weights)
        h1, w1, b1 = da @ w, da.T @ h, sum(da)
        return dict(dh=dtotal * h1, dw=dtotal * w1, db=dtotal * b1)
    return weights @ loss, backward

@op("chosen_logits", h=Draw(3, 2, 3), w=Draw(5, 3), b=Draw(5), bias=Draw(3, 5), groups=[0, 2, 2],
    choices=[(0, 1), (0, 1), (0, 4), (2, 3)])    # pairs of a slot and a word
def chosen_logits(h, w, b, bias, groups, choices):
    """p_mkc = exp(a_mkc - lse_mk)
    da_mkc = dlse_mk p_mkc + Σ_(j asks for c in m) dz_jk
    dh_mk = Σ_c da_mkc w_c, dw_c = Σ_mk da_mkc h_mk, db_c = Σ_mk da_mkc, dbias_gc = Σ_(m of g, k) da_mkc"""
    a = Row(h_m @ w.T + b + bias[g] for h_m, g in zip(h, groups))
    lse = Row(by_row(log_sum_exp, a_m) for a_m in a)

    def backward(dz, dlse):
        dh, dw, db, dbias = 0 * h, 0 * w, 0 * b, 0 * bias
        for m, g in enumerate(groups):
            da = by_row(Row.__mul__, exp(a[m] - by_row(lambda n: 0 * b + n, lse[m])), dlse[m])
            for dz_j, (slot, c) in zip(dz, choices):
                for k, number in enumerate(dz_j if slot == m else []):
                    da[k][c] += number
            dh[m], dw, db, dbias[g] = da @ w, dw + da.T @ h[m], db + sum(da), dbias[g] + sum(da)
        return dict(dh=dh, dw=dw, db=db, dbias=dbias)
    return Row(a[m].T[c] for m, c in choices), lse, backward

ASKED = dict(z=Draw(6, 2), lse=Draw(4, 2), share=[0.5, 0.5, 0.3, 0.2, 0.4, 0.7],
             slots=[[0, 1], [], [2, 3]], choices=[[0, 1], [2, 3, 4], [], [5]])    # slots by document, choices by slot

@op("slot_loss", mix=Draw(4, 2), place=Draw(4), joint=False, **ASKED)
@op("slot_loss, joint", mix=Draw(3, 2), joint=True, **ASKED)
def slot_loss(z, lse, mix, share, slots, choices, joint, place=None):
    """dz_jk = -dloss σ_j ρ_jk dmix_k = dloss (w π_k - t_k)
    dlse_mk = dloss t_mk, joint: dloss t_gk exp(lse_mk - n_gk)
    dplace_m = dloss (w_g p(m) - w_m)"""
    units = slots if joint else [[m] for m in range(len(choices))]    # each has its own π and n; for one slot n is lse
    asked = [[j for m in unit for j in choices[m]] for unit in units]
    n = [by_row(log_sum_exp, Row(lse[m] for m in unit).T) for unit in units]
    pi = by_row(softmax, mix)
    base = {j: log(pi_u) - n_u for js, pi_u, n_u in zip(asked, pi, n) for j in js}
    p = {m: p_m for own in slots if own for m, p_m in zip(own, softmax(Row(place[m] for m in own)) if place else [1] * len(own))}
    loss = Row(-sum(share[j] * (log_sum_exp(base[j] + z[j]) + log(p[m])) for m in own for j in choices[m]) for own in slots)

    def backward(dloss):
        dz, dlse, dmix, w = 0 * z, 0 * lse, 0 * mix, [sum(share[j] for j in of) for of in choices]
        document = {m: g for g, own in enumerate(slots) for m in own}
        rho = {j: softmax(base[j] + z[j]) for j in base}
        for u, unit in enumerate(units):
            t = sum((share[j] * rho[j] for j in asked[u]), 0 * z[0])
            for m in unit:
                dmix[u] = dloss[document[m]] * (sum(share[j] for j in asked[u]) * pi[u] - t)
                dlse[m] = dloss[document[m]] * t * exp(lse[m] - n[u])
                for j in choices[m]:
                    dz[j] = -dloss[document[m]] * share[j] * rho[j]
        if not place:
            return dict(dz=dz, dlse=dlse, dmix=dmix)
        dplace = Row(dloss[document[m]] * (sum(w[o] for o in slots[document[m]]) * p[m] - w[m]) for m in sorted(p))
        return dict(dz=dz, dlse=dlse, dmix=dmix, dplace=dplace)
    return loss, backward

@op("weighted_sum", x=Draw(4), weights=Draw(4, moves=False))
def weighted_sum(x, weights):
    """dx_i = dy ω_i"""
    return weights @ x, lambda dy: dict(dx=dy * weights)


sys.exit(report(EXEMPT))

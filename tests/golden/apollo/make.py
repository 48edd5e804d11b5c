#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints golden.txt anew: every 131st number of a matrix w(40,33), then a vector b(4), after each of six steps of Apollo
(Ma 2020, algorithm 1, rebound "constant", L2 decay of w), the gradient clipped to a global norm of 1. No package."""
BETA, EPS, DECAY, CLIP, RATE, REBOUND = 0.9, 1e-4, 0.005, 1.0, 0.02, 0.01
SWING = [-1, 0.8, 0.5, -0.2, -2, 1]  # curvatures above the rebound, of both signs

tensors = {"w": 1320, "b": 4}
theta = {n: [((7 * i + len(n)) % 11 - 5) / 10 for i in range(size)] for n, size in tensors.items()}
mean, hessian, direction = ({n: [0.0] * size for n, size in tensors.items()} for _ in range(3))
for t in range(1, 7):
    gradient = {n: [SWING[t - 1] * ((3 * i + size) % 13 - 6) * (1 + i / 200) / 300 for i in range(size)] for n, size in tensors.items()}
    norm = sum(g * g for all_g in gradient.values() for g in all_g) ** 0.5
    for n in tensors:
        m, B, d = mean[n], hessian[n], direction[n]
        g = [x * min(1, CLIP / norm) + (DECAY if n == "w" else 0) * p for x, p in zip(gradient[n], theta[n])]
        alpha = (1 - BETA) / (1 - BETA**t)
        delta_g = [x - y for x, y in zip(g, m)]
        mean[n] = m = [y + alpha * x for x, y in zip(delta_g, m)]
        den = sum(x**4 for x in d) ** 0.25 + EPS / REBOUND
        unit = [x / den for x in d]
        v = [x * x for x in unit]
        delta = -alpha * sum(x / den * u for x, u in zip(delta_g, unit)) - sum(x * y for x, y in zip(B, v))
        hessian[n] = B = [x + delta * y for x, y in zip(B, v)]
        direction[n] = d = [x / max(abs(y), REBOUND) for x, y in zip(m, B)]
        theta[n] = [p - RATE / t * x for p, x in zip(theta[n], d)]
    print(*(repr(x) for n in tensors for x in theta[n][:: 131 if n == "w" else 1]))

# SPDX-License-Identifier: MIT
"""Models that are tables: the logits of the next token, by the last two tokens, from a hash of the table's
number. tests/models/writing/search_toy.h has the same ones, bit for bit."""
import numpy

V, BEGIN, END = 7, 0, 1
MASK = (1 << 64) - 1


def mixed(x):
    """splitmix64 (Steele et al. 2014)."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def table(number):
    """logits[a][b][c] in [-3, 3): of token c after ... a b; before BEGIN comes END."""
    entries = [mixed(number << 32 | i) >> 40 for i in range(V**3)]
    return (numpy.array(entries) / (1 << 24) * 6 - 3).astype(numpy.float32).reshape(V, V, V)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counts.py FILE [LESS [PARTS]]: a table of what PTX_COUNTS has written to FILE, a row for each kernel, most launches first.
If LESS is given, its counts are subtracted, and the differences are divided by PARTS: with the counts of 14 steps and of
8 steps, and 6 parts, the table is for a step."""
import re
import subprocess
import sys


def short(name):
    """The name of a kernel without its parameters, and without what every name has. If the kernel calls functions for
    its rows or points, the names of these functions replace the arguments of its template."""
    name = re.sub(r"masquerade::(cuda::)?|\(anonymous namespace\)::|_GLOBAL__N__\w+::|^void ", "", name)
    called = dict.fromkeys(re.findall(r"&\([^(<]*?(\w+)[<(]", name))
    if called:
        return " ".join([name[:name.index("<")], *called])
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0:
            return name[:i] if name.endswith(")") else name


def read(name):
    return {row[0]: [int(n) for n in row[1:]] for row in map(str.split, open(name))}


all, less = read(sys.argv[1]), read(sys.argv[2]) if len(sys.argv) > 2 else {}
parts = int(sys.argv[3]) if len(sys.argv) > 3 else 1
names = subprocess.run(["c++filt"], input="\n".join(all), capture_output=True, text=True).stdout.split("\n")
table = []
for (key, counts), name in zip(all.items(), names):
    counts = [(n - m) / parts for n, m in zip(counts, less.get(key, [0] * len(counts)))]
    instructions, loads, loaded, stores, stored, shared, products, launches, threads, once_a_block, once = counts
    if launches:
        table.append((launches, instructions, threads, loaded / max(loads, 1), stored / max(stores, 1), shared, products,
                      once, once_a_block / max(once, 1), (loaded + stored) / max(once, 1), short(name)))
# "least" counts each byte once for each launch that reads or writes it; "x block" and "x all" are multiples of it: each
# byte once for each block, and every access.
print("launches  instructions    threads  B/load  B/store     shared      mma  bytes least  x block  x all  kernel")
for *numbers, name in sorted(table, reverse=True):
    print("{:8.2f} {:13.0f} {:10.0f} {:7.1f} {:8.1f} {:10.0f} {:8.0f} {:12.0f} {:8.2f} {:6.2f}  ".format(*numbers)
          + name[:100])

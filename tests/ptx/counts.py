#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counts.py FILE: a table of what PTX_COUNTS has written to FILE, a row for each kernel, most instructions first."""
import re
import subprocess
import sys


def short(name):
    """The name of a kernel without its parameters, which end it, and without what every name has."""
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0:
            name = name[:i]
            break
    return re.sub(r"masquerade::(cuda::)?|\(anonymous namespace\)::|_GLOBAL__N__\w+::|^void ", "", name)


rows = [line.split() for line in open(sys.argv[1])]
names = subprocess.run(["c++filt"], input="\n".join(row[0] for row in rows), capture_output=True, text=True).stdout.split("\n")
table = []
for row, name in zip(rows, names):
    instructions, loads, loaded, stores, stored, shared, products, launches, threads = map(int, row[1:])
    table.append((instructions, launches, threads, loaded / max(loads, 1), stored / max(stores, 1), shared, products,
                  short(name)))
print("instructions  launches    threads  B/load  B/store     shared        mma  kernel")
for *numbers, name in sorted(table, reverse=True):
    print("{:12d} {:9d} {:10d} {:7.1f} {:8.1f} {:10d} {:10d}  ".format(*numbers) + name[:100])

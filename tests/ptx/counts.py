#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counts.py FILE: a table of what PTX_COUNTS has written to FILE, a row for each kernel, most instructions first."""
import re
import subprocess
import sys

rows = [line.split() for line in open(sys.argv[1])]
names = subprocess.run(["c++filt"], input="\n".join(row[0] for row in rows), capture_output=True, text=True).stdout.split("\n")
table = []
for row, name in zip(rows, names):
    instructions, loads, loaded, stores, stored, shared, products, launches, threads = map(int, row[1:])
    name = re.sub(r"masquerade::(cuda::)?|\(anonymous namespace\)::|_GLOBAL__N__\w+::|^void ", "", name)
    table.append((instructions, launches, threads, loaded / max(loads, 1), stored / max(stores, 1), shared, products,
                  re.sub(r"\(.*", "", name)))
print("instructions  launches    threads  B/load  B/store     shared        mma  kernel")
for *numbers, name in sorted(table, reverse=True):
    print("{:12d} {:9d} {:10d} {:7.1f} {:8.1f} {:10d} {:10d}  ".format(*numbers) + name[:100])

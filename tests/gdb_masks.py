# SPDX-License-Identifier: MIT
# Compares the masks that tools/gdb/mask.py reads in a stopped program with the pictures that the program draws, for all
# masks of ./inspect mask. Needs gdb and `make debug` or `make walks`:
#     PROGRAM=build/debug/inspect gdb -q -batch -x tests/gdb_masks.py
import os
import re
import subprocess
import sys
import tempfile

import gdb

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/gdb"))
import mask

program = os.environ.get("PROGRAM", "build/debug/inspect")
listed = subprocess.run([program, "mask"], stdout=subprocess.PIPE, text=True, check=True).stdout
names = re.findall(r"^([a-z][\w-]*) +\w", listed, re.M)
names += ["A full; B causal window=2", "AB full window=1 dilation=2 globals=1", "AB full window=1 stride=3"]
passed, failed = 0, 0


def drawn(text, count):
    """Returns the marks of the `count` rows of a picture: True where a key is seen."""
    body = [line[mask.LABEL:] for line in text.splitlines()[3:3 + count]]
    keys = len(text.splitlines()[1].split())
    width = min(3, (mask.PAGE - mask.LABEL) // keys)
    return [[line[i:i + 1] == "█" for i in range(0, width * keys, width)] for line in body]


gdb.execute("set confirm off")
gdb.execute("set pagination off")
gdb.execute("file " + program)
gdb.execute("break picture_of")
for name in names:
    with tempfile.NamedTemporaryFile("r") as out:
        gdb.execute("run mask '%s' > %s" % (name, out.name), to_string=True)
        frame = gdb.selected_frame()
        rows, _ = mask.Graph(frame.read_var("graph").referenced_value()).seen(0)
        queries = len(mask.items_of(frame.read_var("queries").referenced_value()))
        keys = [len(mask.items_of(labels)) for labels in mask.items_of(frame.read_var("keys").referenced_value())]
        found = [[(source, key) in rows.get(row, ()) for source, count in enumerate(keys) for key in range(count)]
                 for row in range(queries)]
        gdb.execute("continue", to_string=True)
        expected = drawn(out.read(), queries)
    if found == expected and any(map(any, found)):
        passed += 1
    else:
        failed += 1
        print("mask %s\n  expected: %s\n  found:    %s" % (name, expected, found))
print("gdb masks: %d passed, %d failed" % (passed, failed))
gdb.execute("quit %d" % (failed > 0 or passed < 20))

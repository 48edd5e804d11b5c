# SPDX-License-Identifier: MIT
"""precision.py RUN...: makes calls to each run in f32 and in bf16. A call that works in f32 must work in bf16, with a
result of the same kind. Scores and attention must be near those in f32, but not all equal. A flow must be refused.
Prints what is wrong, or ok."""
import os
import sys

import numpy as np

sys.path.insert(0, "python")
import masquerade

wrong = []


def near(name, a, b):
    if a.shape != b.shape or not np.isfinite(b).all() or np.abs(a - b).max() > 0.1 * np.abs(a).max():
        wrong.append(f"{name}: {b} is not near {a}")
    return (a == b).all()


for folder in sys.argv[1:]:
    run = masquerade.Run.open(folder)
    if run.describe()["family"] == "flow":
        try:
            masquerade.Run.open(folder, precision="bf16")
            wrong.append(f"{folder}: a flow computes in bf16")
        except masquerade.Misuse as error:
            if "which computes only in f32" not in str(error):
                wrong.append(f"{folder}: {error}")
        continue
    half = masquerade.Run.open(folder, precision="bf16")
    lines = ["red box blue", "green cup"]
    if os.path.basename(folder) in ("both", "seq2seq", "insertion"):
        lines = ["red box blue\tcup", "green cup\tlamp bell"]
    for call in (lambda of: of.encode(lines), lambda of: of.decode(of.encode(lines)), lambda of: of.generate(lines),
                 lambda of: of.generate(lines, beam=3), lambda of: of.generate(count=3, seed=7)):
        try:
            there = call(run)
        except masquerade.Error:
            continue
        if len(call(half)) != len(there):
            wrong.append(f"{folder}: {call(half)} in bf16, {there} in f32")
    try:
        scores = run.score(lines, importance=3)
    except masquerade.Error:
        scores = None
    if scores is not None and near(f"{folder}: scores", scores, half.score(lines, importance=3)):
        wrong.append(f"{folder}: the scores are those in f32")
    try:
        maps = run.attention(lines[0])
    except masquerade.Error:
        continue
    if all([near(f"{folder}: {a.path}", a.p, b.p) for a, b in zip(maps, half.attention(lines[0]), strict=True)]):
        wrong.append(f"{folder}: the attention is that in f32")
print("\n".join(wrong) or "ok")

# SPDX-License-Identifier: MIT
"""precision.py RUN...: makes calls to each run in f32 and in bf16. A call that works in f32 must work in bf16, with a
result of the same kind. Scores and attention must be near those in f32, but not all of them equal. A flow must be
refused. Prints what is wrong, or ok."""
import sys

import numpy as np

sys.path.insert(0, "python")
import masquerade

wrong = []


def near(name, a, b, most):
    if a.shape != b.shape or not np.isfinite(b).all() or np.abs(a - b).max() > most * np.abs(a).max():
        wrong.append(f"{name}: {b} is not near {a}")


for folder in sys.argv[1:]:
    try:
        run, half = masquerade.Run.open(folder), masquerade.Run.open(folder, precision="bf16")
    except masquerade.Misuse as error:
        if "which computes only in f32" not in str(error) or masquerade.Run.open(folder).describe()["family"] != "flow":
            wrong.append(f"{folder}: {error}")
        continue
    lines = ["red box blue", "green cup"]
    if run.describe()["family"] in ("seq2seq", "insertion") or run.describe()["settings"].get("max_target"):
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
        scores = run.score(lines, importance=3), half.score(lines, importance=3)
        near(f"{folder}: scores", *scores, 0.1)
        if (scores[0] == scores[1]).all():
            wrong.append(f"{folder}: the scores are those in f32")
    except masquerade.Error:
        pass
    try:
        maps = run.attention(lines[0])
    except masquerade.Error:
        continue
    for one, other in zip(maps, half.attention(lines[0]), strict=True):
        near(f"{folder}: {one.path}", one.p, other.p, 0.1)
print("\n".join(wrong) or "ok")

# SPDX-License-Identifier: MIT
"""train.py FOLDER: trains from Python into FOLDER, and prints ok."""
import os
import signal
import sys
import threading

import numpy as np

sys.path.insert(0, "python")
import masquerade

folder = sys.argv[1]
small = dict(layers=2, width=16, heads=2, inner=32, batch_tokens=200, warmup=5, vocabulary=120, max_length=20)
notes = []
masquerade.on_log(notes.append)


def train(name, settings, **options):
    return masquerade.train("lm", settings, data=f"{folder}/lines", minutes=0, out=f"{folder}/{name}", **options)


seen = []
assert train("python", small, steps=12, progress=seen.append) == f"{folder}/python"
assert [step.step for step in seen] == list(range(1, 13))
assert all(np.isfinite(step.loss) and step.norm > 0 for step in seen) and seen[-1].loss < seen[0].loss

seen = []
train("stopped", small, steps=12, progress=lambda step: seen.append(step) or step.step == 5)
assert len(seen) <= 6 and masquerade.Run.open(f"{folder}/stopped").describe()["step"] == len(seen), seen


def fail(step):
    raise KeyError("from the callback")


try:
    train("failed", small, steps=12, progress=fail)
    raise SystemExit("the exception of the callback is lost")
except KeyError:
    assert masquerade.Run.open(f"{folder}/failed").describe()["step"] >= 1
folder_of_interrupted = f"{folder}/interrupted"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs with SIGINT ignored
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    train("interrupted", small, steps=100000)
    raise SystemExit("Ctrl-C is lost")
except KeyboardInterrupt:
    assert masquerade.Run.open(folder_of_interrupted).describe()["step"] >= 1
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
try:
    masquerade.train("lm", resume=f"{folder}/failed", out="other")
    raise SystemExit("a resumed run takes another folder")
except masquerade.Misuse:
    pass
resumed = masquerade.train(settings={}, resume=f"{folder}/failed", steps=12)
assert masquerade.Run.open(resumed).describe()["step"] == 12

table = masquerade.mask_words(np.tril(np.ones((20, 20), bool)))
assert np.array_equal(masquerade.mask(table, 20), masquerade.mask("lm", 20))
losses = {"table": [], "usual": []}
for name, words in ("table", table), ("usual", "AB causal"):
    train(name, dict(small, precision="f32", mask=words), steps=12, progress=lambda step: losses[name].append(step.loss))
assert np.allclose(losses["table"], losses["usual"], rtol=1e-5), losses
try:
    train("short", dict(small, mask=masquerade.mask_words(np.ones((2, 2), bool))), steps=12)
    raise SystemExit("a document that is longer than the table is not refused")
except masquerade.Misuse as error:
    assert "the table rows= has 2" in str(error), error
masquerade.on_log(None)
assert not any("error" in note for note in notes), notes
print("ok")

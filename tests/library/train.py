# SPDX-License-Identifier: MIT
"""train.py FOLDER: trains from Python into FOLDER, and prints ok."""
import os
import shutil
import signal
import subprocess
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

# A thread that trains when the interpreter ends is ended by Python within the callback.
program = f"""
import sys, threading, time
sys.path.insert(0, "python")
import masquerade
options = dict(data="{folder}/lines", out="{folder}/daemon", steps=100000, minutes=0)
threading.Thread(target=masquerade.train, args=("lm", {small}), kwargs=options, daemon=True).start()
time.sleep(1)
"""
ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
assert ended.returncode == 0, ended

# The files of a run are protected wherever the program is.
run, place = masquerade.Run.open(os.path.relpath(f"{folder}/python")), os.getcwd()
os.chdir(f"{folder}/python")
try:
    run.generate(["a cup"], vectors="vocab.txt")
    raise SystemExit("a file of the run is overwritten")
except masquerade.Misuse as error:
    assert "would be lost" in str(error), error
os.chdir(place)
os.chdir(folder)
run = masquerade.Run.open("univae-gaussian")
samples = run.generate(count=5, seed=7)
os.chdir(place)
masquerade.on_log(notes.append)
assert run.generate(count=5, seed=7) == samples
assert not any("prior.safetensors is not there" in note for note in notes), notes
masquerade.on_log(None)
latents = masquerade.Run.open(f"{folder}/univae-gaussian")
assert latents.decode(np.zeros((0, latents.describe()["vectors"]))) == []
for rows, options in ((np.zeros((0, 1)), {}), (np.zeros((0, latents.describe()["vectors"])), {"nosuch": 1})):
    try:
        latents.decode(rows, **options)
        raise SystemExit("wrong options or columns are not refused where there are no rows")
    except (masquerade.Misuse, masquerade.Error):
        pass

# A locale with a decimal comma.
if shutil.which("localedef"):
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], capture_output=True)
program = f"""
import locale, sys
sys.path.insert(0, "python")
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
import masquerade
assert masquerade.Run.open("{folder}/python").generate(count=1, temperature=0.7, length_penalty=0.6)
"""
if os.path.exists(f"{folder}/de_DE.UTF-8"):
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ, LOCPATH=folder))
print("ok")

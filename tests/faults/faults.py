#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# faults.py TRAIN SHIM FOLDER: tries runs of two steps, of every family, in which one system call fails or kills the
# program.
#
# A call on a file is the n-th open, read, write, fsync, rename, ... on the run folder and the texts. A call for memory
# is the n-th malloc, new or mmap (shim.cpp). Both a fresh run and a run that resumes after its first step are tried.
# Afterwards:
#   - If the call failed, the status is 1 and there is one line "error: ...". If the program can do without the call,
#     the status is 0 and there is no such line.
#   - The run can be continued: with --resume if it has a checkpoint, otherwise by the same command again. It then ends
#     with the bits of an undisturbed run.
#   - The run folder then holds the same names as the folder of an undisturbed run.
# SAMPLE: how many calls of each kind are tried for each family and run (default: 60 on files, 24 for memory). SEED
# draws them. ONE=family:run:kind:how:n tries a single call.
import errno, os, random, re, shutil, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

train, shim, folder = (os.path.abspath(path) for path in sys.argv[1:4])
os.chdir(folder)
samples = {"files": int(os.environ.get("SAMPLE", 60)), "memory": int(os.environ.get("SAMPLE", 24))}
dice = random.Random(int(os.environ.get("SEED", 1)))

with open("pairs.tsv", "w") as pairs, open("sentences.txt", "w") as sentences:
    for color in "red blue green".split():
        for thing in "box cup lamp ring bell".split():
            pairs.write(f"the {color} {thing}\t{thing} {color}\n")
            sentences.write(f"the {color} {thing}\n")
tokenize = os.path.join(os.path.dirname(train), "tokenize")
for what in ("--train 60 --vocab vocab.txt", "--vocab vocab.txt --pack packed --pairs"):
    with open("pairs.tsv") as source:
        subprocess.run([tokenize, *what.split()], stdin=source, capture_output=True, check=True)
small = ("save_every=1 warmup=2 schedule_start=10 schedule_steps=100 keep=1 "
         "--threads 1 --device cpu").split()
stack = "width=8 heads=1 inner=8 batch_tokens=60".split()
# Settings of single families, besides `small` and `stack`. A family that is not listed has the settings `pairs`.
words = "--data sentences.txt --dev sentences.txt".split()
pairs = "--data pairs.tsv --dev pairs.tsv max_length=16 vocabulary=80 layers=1".split()
own = {
    "univae": ["layers=2", "latent_layers=1", "latent=vq", "codes=8", "max_length=16", "vocabulary=80", *words],
    "seq2seq": "--data packed --dev pairs.tsv max_length=16 layers=1".split(),
    "flow": "points=moons flow_steps=2 flow_width=4 batch_rows=8 held_out=20".split(),
    "classify": "task=copy length=6 vocabulary=8 held_out=4 layers=1".split(),
}
text = subprocess.run([train, "--help"], capture_output=True, text=True).stdout
families = re.findall(r"^  (\w+)  ", text[text.index("\nModels"):text.index("\nOptions")], re.M)
assert len(families) >= 5, text


def start(family):
    return [train, family, *small, *([] if family == "flow" else stack), *own.get(family, pairs), "--out", "run"]


def run(command, where, **fault):
    environment = dict(os.environ, **({"LD_PRELOAD": shim, "FAULT_UNDER": folder, **fault} if fault else {}))
    return subprocess.run(command, cwd=where, capture_output=True, text=True, env=environment, timeout=60)


def steps(n, command):
    return [*command, "--steps", str(n)]


def contents(where):
    """What must be equal: names, checkpoints by their bytes, the log without clock times."""
    found = {}
    for place, folders, files in os.walk(os.path.join(where, "run")):
        for name in folders + files:
            path = os.path.join(place, name)
            key = os.path.relpath(path, where)
            if os.path.islink(path):
                found[key] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[key] = file.read()
    log = found.get("run/log.jsonl", b"").decode()
    found["run/log.jsonl"] = re.findall(r'"step":\d+|"(?:loss|held_out_loss)":[^,}]*', log)
    samples = found.get("run/samples.txt", b"").decode()
    found["run/samples.txt"] = samples[samples.rfind("step 2"):]  # every end of a training adds some
    found["run/run.json"] = None  # holds how often the run was resumed
    return found


def copy_texts(where):
    for name in ("pairs.tsv", "sentences.txt"):
        shutil.copy(name, where)
    shutil.copytree("packed", os.path.join(where, "packed"))


def prepare(family):
    os.makedirs(f"{family}/whole"), os.makedirs(f"{family}/begun")
    for where, n in ((f"{family}/whole", 2), (f"{family}/begun", 1)):
        copy_texts(where)
        done = run(steps(n, start(family)), where)
        assert done.returncode == 0, (family, done.stderr)
    whole = contents(f"{family}/whole")
    shutil.copytree(f"{family}/begun", f"{family}/resumed", symlinks=True)
    done = run(steps(2, [train, "--resume", "run", "--threads", "1"]), f"{family}/resumed")
    assert done.returncode == 0 and differences(whole, contents(f"{family}/resumed")) == [], (family, done.stderr)
    return whole


def differences(whole, found):
    # If an error kept an old step folder from being removed, the folder may stay until the next checkpoint.
    return sorted(key for key in {*whole, *found} if whole.get(key, "missing") != found.get(key, "missing") and "/step-000001" not in key)


def command_of(family, kind):
    return start(family) if kind == "fresh" else [train, "--resume", "run", "--threads", "1", "--device", "cpu"]


def lay_out(where, family, kind):
    """Makes the folder in which a training starts or is resumed."""
    if kind == "fresh":
        os.makedirs(where)
        copy_texts(where)
    else:
        shutil.copytree(f"{family}/begun", where, symlinks=True)


def attempt(family, kind, calls, how, n, whole):
    """Gives what is wrong, or nothing."""
    try:
        return tried(family, kind, calls, how, n, whole)
    except subprocess.TimeoutExpired:
        return f"{family}:{kind}:{calls}:{how}:{n}: hangs"


def tried(family, kind, calls, how, n, whole):
    where = f"{folder}/{family}/{kind}-{calls}-{how}-{n}"
    lay_out(where, family, kind)
    by = "kill" if how == "kill" else ("-" if how.startswith("-") else "") + str(getattr(errno, how.lstrip("-")))
    done = run(steps(2, command_of(family, kind)), where, FAULT_CALLS=calls, FAULT_AT=str(n), FAULT_HOW=by, FAULT_COUNT="/dev/stdout")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    wrong = []
    if how == "kill" or "Fatal glibc error: failed to register TLS destructor" in done.stderr:  # glibc's own end, of no use to catch
        if done.returncode not in (-9, -6, 0):
            wrong.append(f"status {done.returncode}")
    elif done.returncode == 0 and errors or done.returncode == 1 and len(errors) != 1 or done.returncode not in (0, 1):
        wrong.append(f"status {done.returncode}, {len(errors)} error lines: {done.stderr[-500:]}")
    if done.returncode != 0 or differences(whole, contents(where)):
        resumes = any(name.startswith("step-") for name in (os.listdir(f"{where}/run") if os.path.isdir(f"{where}/run") else []))
        again = run(steps(2, [train, "--resume", "run", "--threads", "1"] if resumes else start(family)), where)
        if again.returncode != 0:
            wrong.append(f"cannot go on by {'--resume' if resumes else '--out'}: {again.stderr[-500:]}")
        elif differences(whole, contents(where)):
            wrong.append("differ afterwards: " + " ".join(differences(whole, contents(where))))
    if not wrong:
        shutil.rmtree(where)
        return ""
    call = done.stdout.rstrip().splitlines()[-1:]
    return f"{family}:{kind}:{calls}:{how}:{n} ({' '.join(call)}): " + "; ".join(wrong)


hows = {"files": ["kill", "ENOSPC", "EIO", "EACCES", "-ENOSPC"], "memory": ["ENOMEM", "-ENOMEM"]}
tries, counted = [], []
with ThreadPoolExecutor(2) as pool:
    wholes = dict(zip(families, pool.map(prepare, families)))
for family in families:
    for kind in ("fresh", "resumed"):
        for calls in ("files", "memory"):
            where = f"{family}/count"
            lay_out(where, family, kind)
            done = run(steps(2, command_of(family, kind)), where, FAULT_CALLS=calls, FAULT_AT="0", FAULT_HOW="kill", FAULT_COUNT="count")
            assert done.returncode == 0, done.stderr
            with open(f"{where}/count") as file:
                n = int(file.read().split()[0])
            assert n > 20, (family, kind, calls, n)  # checks that the shim sees the calls
            shutil.rmtree(where)
            counted.append(f"{family} {kind} {n} {calls}")
            every = list(range(1, n + 1))
            for at in sorted(dice.sample(every, min(samples[calls], n))):
                tries.append((family, kind, calls, dice.choice(hows[calls]), at, wholes[family]))
if "ONE" in os.environ:
    family, kind, calls, how, n = os.environ["ONE"].split(":")
    tries = [(family, kind, calls, how, int(n), wholes[family])]
print("calls: " + ", ".join(counted))
with ThreadPoolExecutor(2) as pool:
    wrong = [line for line in pool.map(lambda one: attempt(*one), tries) if line]
for line in wrong:
    print(line)
print(f"faults: {len(tries) - len(wrong)} passed, {len(wrong)} failed")
sys.exit(len(wrong) > 0)

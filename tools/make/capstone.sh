#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/capstone.sh [OPTIONS] FOLDER: measures a project of docs/labs/capstone.md. FOLDER is a clone of this
# repository. Its file capstone.txt has the settings of ./train, as KEY=VALUE. Builds the clone, trains once for each
# seed on the training text of the corpus of this tree, and measures each run on the test text, which no training reads.
# Prints one line for each seed and the means. The status is 0 if the project keeps the rules.
#   --seeds "1 2 3"   the seeds (default: 1 2 3)
#   --minutes M       minutes of each training (default: 10)
#   --corpus FOLDER   another corpus (default: corpus/ of this tree, made by `make data`)
#   --out FOLDER      keeps the runs there
# The programs of FOLDER run without walls. Read the changes before, or use a machine that has nothing to lose.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
usage='usage: tools/make/capstone.sh [--seeds "1 2 3"] [--minutes M] [--corpus FOLDER] [--out FOLDER] FOLDER'
fail() { echo "error: $*" >&2; exit 1; }
seeds='1 2 3' minutes=10 corpus=$root/corpus out=
while [ $# -gt 0 ]; do
    case "$1" in
        --seeds | --minutes | --corpus | --out)
            [ $# -gt 1 ] || { echo "error: $1 needs a value; $usage" >&2; exit 2; }
            case "$1" in --seeds) seeds=$2 ;; --minutes) minutes=$2 ;; --corpus) corpus=$2 ;; *) out=$2 ;; esac
            shift 2 ;;
        -*) echo "error: there is no option $1; $usage" >&2; exit 2 ;;
        *) break ;;
    esac
done
[ $# = 1 ] || { echo "error: which folder? $usage" >&2; exit 2; }
[ -d "$1" ] || fail "$1 is no folder"
[ -f "$corpus/SOURCE.json" ] || fail "$corpus has no SOURCE.json: make data builds a corpus"
mine=$(cd "$1" && pwd)
corpus=$(cd "$corpus" && pwd)

# Settings only: an option could name other text or other weights.
read -ra settings <<< "$(tr -s '\n\t' '  ' < "$mine/capstone.txt" 2> /dev/null || true)"
for word in ${settings[@]+"${settings[@]}"}; do
    [[ $word =~ ^[a-z_0-9]+=[^=]+$ ]] || fail "capstone.txt: $word is no setting KEY=VALUE"
done
# The files that measure must be those of this tree.
measure='data models/scoring models/runs/measures.h models/runs/sample_measures.cpp models/runs/sample_measures.h models/runs/univae_measures.cpp tools/evaluate.cpp'
for part in $measure; do
    diff -rq "$root/$part" "$mine/$part" > /dev/null || fail "$part differs from this tree, and it measures"
done

if [ -z "$out" ]; then out=$(mktemp -d); trap 'rm -rf "$out"' EXIT; fi
mkdir -p "$out"
make -s -C "$mine" train evaluate > "$out/build" 2>&1 || { tail -n 5 "$out/build" >&2; fail "$1 does not build"; }
text=$(sed -n 's/.*"train": "\(.*\)\.train\.txt".*/\1/p' "$corpus/SOURCE.json" | head -n 1)
[ -f "$corpus/$text.test.txt" ] || fail "$corpus has no test text"
for seed in $seeds; do
    SECONDS=0
    "$mine/train" univae ${settings[@]+"${settings[@]}"} --data "$corpus/$text.train.txt" --dev "$corpus/$text.dev.txt" --minutes "$minutes" \
        --threads 2 --seed "$seed" --out "$out/$seed" > "$out/$seed.log" 2>&1 || { tail -n 3 "$out/$seed.log" >&2; fail "the training with seed $seed ends with an error"; }
    printf '%s %s\n' "$seed" "$SECONDS" >> "$out/seconds"
    "$mine/evaluate" "$out/$seed" --data "$corpus/$text.test.txt" --threads 2 --json > "$out/$seed.json" 2> "$out/$seed.errors" ||
        { tail -n 3 "$out/$seed.errors" >&2; fail "the measurement of seed $seed ends with an error"; }
done
python3 - "$out" "$seeds" "$minutes" <<'PY'
import json, math, sys
out, seeds, most_seconds = sys.argv[1], sys.argv[2].split(), 60 * float(sys.argv[3]) + 60
seconds = dict(line.split() for line in open(f"{out}/seconds"))
columns = [("exact %", 1), ("kl", 1), ("perplexity", 2), ("distinct", 2), ("copied %", 1), ("lost %", 1), ("seconds", 0)]
def line(name, row): print(f"{name:<6}" + "".join(f" {x:>10.{digits}f}" for x, (_, digits) in zip(row, columns)))
rows = []
print(f"{'seed':<6}" + "".join(f"{name:>11}" for name, _ in columns))
for seed in seeds:
    m = json.load(open(f"{out}/{seed}.json"))
    value = lambda key: m.get(key, {}).get("value", math.nan)
    times = lambda key: value(key) / m.get(key, {}).get("held_out", math.nan)
    rows.append([value("exact"), value("kl"), times("samples_perplexity"), times("samples_distinct2"), value("samples_copied"),
                 value("cut") + value("unknown"), float(seconds[seed])])
    line(seed, rows[-1])
mean = [sum(column) / len(rows) for column in zip(*rows)]
line("mean", mean)
broken = []
if not mean[0] >= 0: broken.append("the runs reconstruct nothing")
if not mean[1] <= 88.2: broken.append(f"the code has {mean[1]:.1f} nats a sentence, at most 88.2 are allowed")
if not mean[2] <= 2: broken.append(f"samples have {mean[2]:.2f} times the perplexity of held-out lines, at most 2 are allowed")
if not mean[3] >= 1: broken.append(f"samples have {mean[3]:.2f} times as many different pairs of words as held-out lines, at least 1 is asked")
if not mean[4] <= 10: broken.append(f"{mean[4]:.1f} % of the samples are lines of the training text, at most 10 % are allowed")
if not mean[5] <= 1: broken.append(f"{mean[5]:.1f} % of the sentences are cut or have [UNK], at most 1 % are allowed")
if not mean[6] <= most_seconds: broken.append(f"a training takes {mean[6]:.0f} seconds, at most {most_seconds:.0f} are allowed")
for b in broken: print("rule broken: " + b)
if not broken: print(f"exact {mean[0]:.1f} %, within the rules")
sys.exit(1 if broken else 0)
PY

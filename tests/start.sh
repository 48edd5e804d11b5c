#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests what ./train says and stores when it starts and ends: --dry-run, the classes of files, the records of log.jsonl
# and run.json, and the commands that it prints.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"
train() { "$root/train" --device cpu --threads 1 "$@"; }
tiny='width=16 heads=2 inner=32 layers=2 vocabulary=120 batch_tokens=200'
for i in $(seq 60); do printf 'the %d red cups\t%d cups of tin\n' $i $((i % 7)); done > pairs.tsv
mkdir -p classes/a classes/b
for i in $(seq 40); do echo "$i is a" > classes/a/$i; echo "b is $i" > classes/b/$i; done

# ---- --dry-run: sizes, memory and the first documents, for every family and objective; nothing is written ----
before=$(find . | sort)
runs=0
"$root/inspect" models | sed -n 's/^[a-z0-9]* *objectives: \(.*\)/\1/p; s/^ *objectives: //p' | tr -d ' ' | tr ',' '\n' | sort -u > objectives
before=$(find . | sort)
for model in $(families_of "$root/inspect") $(cat objectives); do
    runs=$((runs + 1))
    case $model in
        univae) settings="$tiny latent_layers=1 --data pairs.tsv" ;;
        flow) settings=flow_width=8 ;;
        classify) settings='task=classes width=16 heads=2 inner=16 layers=1' ;;
        k-bert) continue ;;  # needs facts
        *) settings="$tiny --data pairs.tsv" ;;
    esac
    said=$(train $model $settings --dry-run 2> /dev/null)
    is "$model --dry-run: status" 0 $?
    is "$model --dry-run: parts" 'text|model|memory|batch|done|' "$(sed -n 's/^\([a-z]\+\) .*/\1/p' <<< "$said" | tr '\n' '|')"
    is "$model --dry-run: documents" 2 "$(grep -cE '^  (document|vector) [12]' <<< "$said")"
    is "$model --dry-run: numbers in place of words" '' "$(grep -E '^    (reads|encoder|decoder) +[0-9]+ [0-9]+ [0-9]+' <<< "$said")"
    is "$model --dry-run: lines of more than 80 columns" '' "$(awk '/^  document/ { on = 1 } on && length > 80' <<< "$said")"
done
is '--dry-run: runs' 'more than 15' "$([ $runs -gt 15 ] && echo more than 15 || echo $runs)"
is '--dry-run writes nothing' "$before" "$(find . | sort)"
said=$(train seq2seq $tiny --data pairs.tsv --dry-run 2> /dev/null | sed -n '/^  document 1/,/^  document 2/p' | tr -s ' ')
is 'a pair: the encoder reads the source' yes "$(grep -qE '^ encoder \[CLS\] the .* red cups \[SEP\]$' <<< "$said" && echo yes || echo "$said")"
is 'a pair: the decoder reads the target' yes "$(grep -qE '^ decoder \[CLS\] [0-6] cups of tin$' <<< "$said" && echo yes || echo "$said")"
is 'a pair: each row predicts the next token' yes "$(grep -qE '^ predicts [0-6] cups of tin \[SEP\]$' <<< "$said" && echo yes || echo "$said")"
said=$(train insertion $tiny --data pairs.tsv --dry-run 2> /dev/null)
is 'an insertion: words behind a +' yes "$(grep -qE '^    predicts .*\+' <<< "$said" && echo yes || echo "$said")"
refuses '--dry-run does not resume' 2 '--resume keeps the settings of the run' "$root/train" --resume none --dry-run

# ---- classes of files ----
train classify task=classes width=16 heads=2 inner=16 layers=1 --dry-run > said 2> /dev/null
is 'classes and their files' 1 "$(grep -cE '^ +2 classes of files: a [0-9]+ to train on and [0-9]+ held out, b [0-9]+ to train on and [0-9]+ held out$' said)"
is 'the files of the classes' 80 "$(grep -oE '[0-9]+ (to train on|held out)' said | awk '{ sum += $1 } END { print sum }')"

# ---- words that are read as [UNK], in files of classes ----
mkdir -p strange/a strange/b
for i in $(seq 40); do echo "红 $i" > strange/a/$i; echo "cups $i" > strange/b/$i; done
train lm $tiny --data pairs.tsv --steps 1 --out base > said 2>&1 || cat said
train classify task=strange tokens=words --init base --steps 1 --out unknown > said 2> error
is 'classify: unknown words' 1 "$(grep -cE '^warning: 40 of [0-9]+ words \([0-9]+ %\) are read as \[UNK\]' error)"

# ---- log.jsonl and run.json ----
train lm $tiny --data pairs.tsv warmup=100 learning_rate=0.01 --steps 60 --out run > said 2>&1 || cat said
is 'log.jsonl: keys' 'learning_rate loss memory norm seconds step tokens tokens_per_second' \
    "$(head -n 1 run/log.jsonl | python3 -c 'import json; print(*sorted(json.loads(input())))')"
is 'log.jsonl: numbers' 'right' "$(python3 - <<'END'
import json
rows = [row for row in map(json.loads, open("run/log.jsonl")) if "loss" in row]
steps = [row["step"] for row in rows]
rates = [row["learning_rate"] for row in rows]
wanted = [0.01 * step / 100 for step in steps]
if steps != [20, 40, 60]: print("steps", steps)
elif any(abs(a - b) > 1e-6 for a, b in zip(rates, wanted)): print("learning rates", rates, "expected", wanted)
elif not all(1 < row["memory"] < 4000 for row in rows): print("memory", rows)
else:
    speed = (rows[2]["tokens"] - rows[1]["tokens"]) / (rows[2]["seconds"] - rows[1]["seconds"])
    print("right" if abs(rows[2]["tokens_per_second"] / speed - 1) < 0.05 else ("speed", speed, rows))
END
)"
train --resume run --steps 80 > said 2>&1 || cat said
is 'log.jsonl of a resumed run' '20 40 60 80' "$(grep '"loss"' run/log.jsonl | grep -oE '"step":[0-9]+' | tr -dc '0-9\n' | xargs)"
is 'run.json: command, commit and date' 3 "$(grep -cE '^  "(command|commit|date)": ".+"' run/run.json)"

# ---- the commands that are printed at the end can be pasted into a shell ----
strange="it's a \"run\"; \$(touch canary)"
train lm $tiny --data pairs.tsv --steps 2 --out "$strange" > said 2>&1 || cat said
ln -s "$root"/{generate,evaluate,train} .
sed -n '/^next /,$p' said | sed -E 's/^(next)? +//; s/--minutes 10/--steps 3/; s/SOURCES/pairs.tsv/' > commands
is 'commands at the end' 3 "$(wc -l < commands)"
while read -r command; do
    bash -c "$command" < /dev/null > out 2>&1
    is "$command: status" 0 $?
done < commands
is 'no name was run' '' "$(find . -name canary)"

# ---- a wrong word: the nearest right ones ----
refuses 'an op that is not' 2 'the nearest ops are gelu, glu, silu;' "$root/inspect" gradients geluu
refuses 'a setting that is not' 2 'unknown setting widht; did you mean width?' train univae widht=3
refuses 'a setting that is far from all' 2 'the nearest are ' train univae objective=lm
refuses 'a family that is not' 2 'there is no model seq2sec; did you mean seq2seq?' train seq2sec
refuses 'an objective that is not' 2 'there is no model difusion; did you mean diffusion?' train difusion
finish start

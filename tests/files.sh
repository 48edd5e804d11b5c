#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests what programs do with files and standard output when something goes wrong: the reader stops reading, the
# terminal goes away, a disk is full, a file is too large. Takes half a minute on two cores.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"
train() { "$root/train" --device cpu "$@"; }
generate() { "$root/generate" --device cpu "$@"; }
evaluate() { "$root/evaluate" --device cpu "$@"; }
inspect() { "$root/inspect" "$@"; }
tokenize() { "$root/tokenize" "$@"; }

awk 'BEGIN { split("red blue green white", c); split("box cup lamp ring bell", t); split("oak tin clay", m)
             for (i = 1; i <= 4; i++) for (j = 1; j <= 5; j++) for (k = 1; k <= 3; k++)
                 printf "the %s %s is made of %s\t%s %s %s\n", c[i], t[j], m[k], m[k], c[i], t[j] }' > pairs.tsv
cut -f 1 pairs.tsv > sentences.txt
small='layers=1 width=32 heads=2 inner=64 vocabulary=200 batch_tokens=300 max_length=16'
lm="unilm $small objective=lm --data sentences.txt"
train $lm --steps 20 --out lm > /dev/null
is 'a run' 0 $?
train unilm $small --data pairs.tsv --dev pairs.tsv --steps 5 --out pairs > /dev/null
is 'a run of pairs' 0 $?

# ---- two runs have different salts only if their first weights differ, not if these are in different folders ----
train $lm --seed 2 --steps 1 --out other > /dev/null
cp -r lm moved
for start in lm other moved; do train unilm objective=lm --data sentences.txt --init $start --steps 1 --out "from-$start" > /dev/null 2>&1; done
salt() { grep '"salt"' "from-$1/run.json"; }
is 'other first weights: another salt' 1 "$([ "$(salt lm)" != "$(salt other)" ] && [ -n "$(salt other)" ] && echo 1)"
is 'the same first weights from another folder: the same salt' "$(salt lm)" "$(salt moved)"

# ---- training is saved, even if its terminal or the reader of its output goes away ----
# started FOLDER: waits until a run has made its first steps
started() { for _ in $(seq 200); do [ -s "$1/log.jsonl" ] && return; sleep 0.05; done; }
# hung_up NAME COMMAND...: prints the status of the command after two SIGHUPs, as a terminal sends them. If these tests
# run under nohup, the command would inherit that SIGHUP is ignored; env therefore restores the default.
hung_up() {
    env --default-signal=HUP "${@:2}" > report 2> error & local pid=$!
    started "$1"
    kill -HUP $pid; kill -HUP $pid 2> /dev/null
    wait $pid
    echo $?
}
is 'SIGHUP: status' 0 "$(hung_up hup "$root/train" --device cpu $lm --minutes 2 --out hup)"
is 'SIGHUP: saved' 1 "$(grep -c '^stopped as asked after [0-9]* steps, saved in hup' report)"
is 'SIGHUP: it writes' 2 "$(generate hup --count 2 | wc -l)"
is 'SIGHUP with --steps: status' 0 "$(hung_up planned "$root/train" --device cpu $lm --steps 100000 schedule_steps=300000 --out planned)"
is 'SIGHUP with --steps: the command that continues' 1 "$(grep -c '^ *./train --resume planned --steps 100000$' report)"
is 'nohup: status' 0 "$(hung_up nohup nohup "$root/train" --device cpu $lm --steps 500 --out nohup)"
is 'nohup: to the end' 1 "$(grep -c '^done after 500 steps' report)"

# unheard NAME: checks that the run of this name ended with status 1 and one error line, and was saved
unheard() {
    is "$1: status" 1 "$(cat status)"
    is "$1: error" 1 "$(grep -c "^error: standard output cannot be written: .*saved: continue with --resume $1 --minutes 2\$" error)"
    is "$1: one error" 1 "$(grep -c '^error: ' error)"
    is "$1: it writes" 2 "$(generate "$1" --count 2 | wc -l)"
}
{ timeout 60 "$root/train" --device cpu $lm --minutes 2 --out no-reader 2> error; echo $? > status; } |
    head -n 1 > first
is 'no-reader: what was read' 'text    sentences.txt' "$(cat first)"
unheard no-reader
timeout 60 "$root/train" --device cpu $lm --minutes 2 --out closed 2> error >&-
echo $? > status
unheard closed
if has_full_disk; then
    timeout 60 "$root/train" --device cpu $lm --minutes 2 --out full > /dev/full 2> error
    echo $? > status
    unheard full
fi

# ---- a file above the limit ----
train $lm --steps 5 --out limited > /dev/null
small_files() { (ulimit -f 30; "$@"); }
refuses 'a checkpoint above the limit' 1 \
    'model.safetensors: File too large; the earlier checkpoint step-000005 is intact' \
    small_files train --resume limited --steps 10
is 'a checkpoint above the limit: the earlier one' 'step-000005' "$(readlink limited/latest)"
is 'a checkpoint above the limit: it writes' 2 "$(generate limited --count 2 | wc -l)"
small_files timeout 60 "$root/generate" --device cpu lm --count 100000000 > large 2> error
is 'output above the limit: status' 1 $?
is 'output above the limit' 'error: standard output cannot be written: File too large' "$(cat error)"

# ---- standard output that is closed or full: one line, at once ----
# silent NAME COMMAND...: checks the error line and the status if standard output is closed, and if it is a full disk
silent() {
    timeout 20 "${@:2}" 2> error >&- < sentences.txt
    is "$1, closed: status" 1 $?
    is "$1, closed" 1 "$(grep -c '^error: standard output cannot be written: ' error)"
    is "$1, closed: one error" 1 "$(grep -c '^error: ' error)"
    has_full_disk || return
    timeout 20 "${@:2}" 2> error > /dev/full < sentences.txt
    is "$1, full: status" 1 $?
    is "$1, full" 1 "$(grep -c '^error: standard output cannot be written: ' error)"
    is "$1, full: one error" 1 "$(grep -c '^error: ' error)"
}
for program in train generate evaluate inspect tokenize; do
    silent "$program --help" "$root/$program" --help
    silent "$program --version" "$root/$program" --version
done
silent 'generate, samples without end' "$root/generate" --device cpu lm --count 100000000
silent 'generate, targets' "$root/generate" --device cpu pairs
silent evaluate "$root/evaluate" --device cpu pairs
silent 'evaluate, JSON' "$root/evaluate" --device cpu pairs --json
silent tokenize "$root/tokenize" --vocab lm/vocab.txt
silent 'tokenize, a report' "$root/tokenize" --vocab lm/vocab.txt --report
silent 'inspect, a mask' "$root/inspect" mask bert
silent 'inspect, a program' "$root/inspect" program unilm
silent 'inspect, a checkpoint' "$root/inspect" checkpoint lm
generate lm --count 100000 | head -n 1 > first
is 'a reader that has enough' '141 0' "${PIPESTATUS[*]}"

cksum pairs.tsv lm/*.* pairs/*.* > before
inspect checkpoint pairs/latest --save model > /dev/null
is 'a model for others' 'config.json model.safetensors tokenizer.json tokenizer_config.json vocab.txt' "$(ls -A model | xargs)"
logits() { inspect checkpoint model "$@" < sentences.txt; }
mkdir beside
ln -s .. beside/up
for inside in both/vocab.txt both/new "$PWD/both/new" beside/up/both/new both; do
    refuses "inspect: $inside is in the folder that is saved" 2 "--logits $inside lies in the folder of --save" \
        logits --save both --logits "$inside"
done
is 'inspect: nothing was saved' no "$([ -e both ] && echo yes || echo no)"

# ---- if a file cannot be written, the old file stays as it was ----
echo old > outputs.tsv
full_outputs() { (ulimit -f 1; evaluate pairs --data pairs.tsv --outputs outputs.tsv > /dev/null); }
refuses 'outputs above the limit' 1 'cannot write outputs.tsv: File too large' full_outputs
is 'outputs above the limit: the old ones' old "$(cat outputs.tsv)"
echo old > logits
full_logits() { (ulimit -f 1; logits --logits logits > /dev/null); }
refuses 'logits above the limit' 1 'cannot write logits: File too large' full_logits
is 'logits above the limit: the old ones' old "$(cat logits)"
full_save() { (ulimit -f 10; inspect checkpoint pairs/latest --save half > /dev/null); }
refuses 'a model above the limit' 1 'cannot write half/model.safetensors: File too large' full_save
is 'a model above the limit: no part of it' no "$([ -e half ] && echo yes || echo no)"
cut -f 1-2 pairs.tsv | tr '\t' '\n' > words.txt
full_vocabulary() { (ulimit -f 0; tokenize --vocab learned --train 100 < words.txt); }
refuses 'a vocabulary above the limit' 1 'cannot write learned: File too large' full_vocabulary
full_json() { (ulimit -f 1; tokenize --vocab lm/vocab.txt --write-json tokenizer.json); }
refuses 'a tokenizer above the limit' 1 'cannot write tokenizer.json: File too large' full_json
is 'no part of them' '' "$(ls -A | grep -E '^learned$|^tokenizer.json$|^\.new')"
is 'all inputs are as they were' "$(cat before)" "$(cksum pairs.tsv lm/*.* pairs/*.*)"

# ---- devices and pipes are written to, not replaced ----
mkfifo pipe
cat pipe > through & logits --logits pipe > /dev/null
wait $!
logits --logits logits > /dev/null
cmp -s logits through
is 'a pipe: the same bytes' 0 $?
is 'a pipe stays' yes "$([ -p pipe ] && echo yes)"
refuses 'a folder is no file' 1 'cannot write lm: Is a directory' logits --logits lm
if has_full_disk; then
    ln -s /dev/full full-device
    refuses 'logits on a full disk' 1 'cannot write full-device: No space left on device' logits --logits full-device
    refuses 'outputs on a full disk' 1 'cannot write full-device: No space left on device' \
        evaluate pairs --data pairs.tsv --outputs full-device
    is 'what leads to the device stays' yes "$([ -c full-device ] && echo yes)"
fi
cd "$root"
finish files

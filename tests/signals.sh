#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that one SIGTERM ends every program in the middle of its work, whatever it is doing, also if it was stopped and
# continued (Ctrl-Z and fg) before. A program of tools/ without a line in the table fails. Takes half a minute, most of
# it waiting.
. "$(dirname "$0")/command_line.sh"
root=$PWD build=$PWD/${BUILD:-build/release}
programs=$(basename -s .cpp tools/*.cpp)
cd "$folder"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'the red cup %s is here\tcup %s\n' $i $i; done > pairs.tsv
small='layers=2 width=16 heads=2 inner=16 vocabulary=64 max_length=16 batch_tokens=100'
"$build/train" --device cpu unilm $small --data pairs.tsv --steps 2 --out unilm > /dev/null
"$build/train" --device cpu latent_layers=1 $small --data pairs.tsv --steps 2 --out univae > /dev/null
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' cup > words

mkfifo feed
# ends_at_once NAME STATUS SIGNALS COMMAND: sends the signals after half a second of processor time, and checks the
# status. No command of the table would end by itself within a minute.
ends_at_once() {
    local pid waited=0 signal status
    (trap - EXIT; exec yes 'the red cup' > feed) 2> /dev/null &
    (trap - EXIT; eval "exec $4") > out 2> error < feed & pid=$!
    until [ "$(awk '{ print $14 + $15 }' /proc/$pid/stat 2> /dev/null || echo 99)" -ge 50 ] || [ $((waited += 1)) -gt 400 ]; do
        sleep 0.05
    done
    for signal in $3; do kill -$signal $pid; sleep 0.1; done
    timeout 15 tail --pid=$pid -f /dev/null
    kill -KILL $pid 2> /dev/null
    wait $pid 2> /dev/null
    status=$?
    is "$1: status after $3" "$2" "$status"
    is "$1: no error of the language's own" '' "$(grep -E 'terminate|what\(\)' error)"
}
table=(
    "train 0 train unilm $small --data pairs.tsv --minutes 5 --out run-1"
    "train 0 train insertion $small --data pairs.tsv --minutes 5 --out run-2"
    "train 0 train classify task=recall layers=1 width=16 heads=2 inner=16 --minutes 5 --out run-3"
    "generate 143 generate unilm"
    "generate 143 generate univae --count 100000000"
    "evaluate 143 evaluate univae --data pairs.tsv --importance 100000"
    "inspect 143 inspect gradients univae layers=40 width=256"
    "tokenize 143 tokenize --vocab words"
    "tokenize 143 tokenize --vocab words --report"
    "tokenize 143 tokenize --vocab words --restore"
    "tokenize 143 tokenize --vocab new --train 1000"
)
[ ! -x "$build/bench" ] || table+=("bench 0 bench decode --repeats 1000")
for program in $programs; do
    case $program in bench | corpus) continue ;; esac  # bench: where it is built; corpus: it is done in a second
    is "$program is in the table" yes "$(printf '%s\n' "${table[@]}" | grep -q "^$program " && echo yes)"
done
for line in "${table[@]}"; do
    read -r program status command <<< "$line"
    for signals in TERM 'STOP CONT TERM'; do
        rm -rf run-*
        ends_at_once "$command" $status "$signals" "$build/$command"
    done
done
# A signal after the last checkpoint ends the program at once.
for i in $(seq 30000); do echo "the cup $i is $((i * i)) here"; done > large.txt
for seconds in 0.3 0.1 1; do  # tries again if the fit has not begun yet, or is over
    rm -rf run-4
    "$build/train" --device cpu latent_layers=1 $small prior_sentences=30000 --data large.txt --steps 1 --out run-4 > /dev/null 2>&1 & pid=$!
    for _ in $(seq 400); do [ -e run-4/latest ] && break; sleep 0.05; done
    sleep $seconds
    kill $pid 2> /dev/null
    wait $pid 2> /dev/null
    status=$?
    [ $status = 143 ] && break
done
is 'while a prior is fitted: status' 143 $status
is 'while a prior is fitted: it is saved' step-000001 "$(readlink run-4/latest)"
# Two signals within half a second count as one, even if saving takes less time.
"$build/train" --device cpu latent_layers=0 $small --data large.txt --minutes 1 --out run-5 > report 2>&1 & pid=$!
for _ in $(seq 400); do [ -s run-5/log.jsonl ] && break; sleep 0.05; done
kill $pid; sleep 0.1; kill $pid 2> /dev/null
wait $pid
is 'two presses in a tenth of a second: status' 0 $?
is 'two presses in a tenth of a second: said' 1 "$(grep -c '^stopped as asked' report)"

# A job of docs/examples/seeds.sbatch that receives SIGTERM before its time is over, and is then submitted again, has the
# bits of a job without a stop. The variables are those that Slurm sets.
job() {  # job FOLDER
    mkdir -p "$1" && cd "$1" && ln -sf "$build/train" train
    SLURM_ARRAY_TASK_ID=3 SLURM_CPUS_PER_TASK=1 NAME=lm STEPS=3000 exec bash "$root/docs/examples/seeds.sbatch" \
        unilm objective=lm $small --data ../pairs.tsv save_every=100000
}
(trap - EXIT; job straight > straight.txt 2>&1)
is 'a job: status' 0 $?
is 'a job: its seed' 3 "$(python3 -c 'import json; print(json.load(open("straight/lm/seed-3/run.json"))["seed"])')"
(trap - EXIT; job stopped > stopped.txt 2>&1) & pid=$!
for _ in $(seq 400); do [ -s stopped/lm/seed-3/log.jsonl ] && break; sleep 0.02; done
kill $pid
wait $pid
is 'a job that is stopped: status' 0 $?
is 'a job that is stopped: it is saved before its last step' 1 "$(grep -c '^stopped as asked' stopped.txt)"
(trap - EXIT; job stopped > stopped.txt 2>&1)
is 'a job that is submitted again: status' 0 $?
for file in model.safetensors state.safetensors; do
    cmp -s straight/lm/seed-3/step-003000/$file stopped/lm/seed-3/step-003000/$file
    is "a job that is submitted again: $file" 0 $?
done
(trap - EXIT; job stopped > stopped.txt 2>&1)
is 'a job that has already ended: status' 0 $?
is 'a job that has already ended: no step more' step-003000 "$(readlink stopped/lm/seed-3/latest)"
finish signals

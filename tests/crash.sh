#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kills ./train with SIGKILL at random moments (KILLS of them, default 100) of a run that saves at every step. After
# each kill, the newest checkpoint must load. In the end, the killed run must have the same bits as a run that was left
# alone.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD kills=${KILLS:-100} seed=${SEED:-$RANDOM}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
"$root/build/release/corpus" grammar --out corpus > /dev/null
settings="layers=3 latent_layers=2 width=32 inner=64 heads=2 vocabulary=500 batch_tokens=120 save_every=1
          warmup=10 schedule_start=10 schedule_steps=2000"
steps=$((kills * 6))

"$root/train" $settings --steps $steps --out alone > train.log 2>&1 || { cat train.log; exit 1; }
# The state after a kill between the first step folder and run.json: the step must load.
cp -a alone early
mv early/run.json early/.run.json
rm early/latest
"$root/generate" early --count 1 > /dev/null 2>&1 || { echo "a run killed before it had a run.json does not load"; exit 1; }
RANDOM=$seed
echo "crash test: $kills kills, seed $seed"
# If a kill falls between the first step folder and the link `latest`, the run has no such link. --resume then makes it.
newest() { compgen -G 'killed/step-*' | tail -n 1 || true; }
done=0 moments=0 advanced=0
while [ $done = 0 ]; do
    before=$(newest)
    if [ -n "$before" ]; then arguments="--resume killed"; else arguments="$settings --out killed"; fi
    # When all kills have been made, the run may finish.
    limit=$steps
    [ "$moments" -ge "$kills" ] || limit=$((steps - 1))
    "$root/train" $arguments --steps $limit > train.log 2>&1 & pid=$!
    if [ $limit != $steps ]; then
        # Starting takes longer than many steps, most of all on a busy machine. Two of three kills wait until this
        # process has saved a step; the third may fall into the start.
        until [ $((moments % 3)) = 2 ] || [ "$(newest)" != "$before" ] || ! kill -0 $pid 2> /dev/null; do sleep 0.01; done
        sleep "0.$(printf '%03d' $((RANDOM % 200)))"
        kill -9 $pid 2> /dev/null || true
        status=0
        wait $pid 2> /dev/null || status=$?
        case $status in
            137)
                moments=$((moments + 1))
                [ "$(newest)" = "$before" ] || advanced=$((advanced + 1)) ;;
            0) rm -rf killed ;;  # a fast machine has taken all steps before all kills: the next run starts anew
            *) cat train.log; echo "ended with status $status before kill $((moments + 1))"; exit 1 ;;
        esac
        [ -z "$(newest)" ] || "$root/generate" killed --count 1 > /dev/null 2> generate.log ||
            { cat generate.log; echo "no checkpoint loads after kill $moments"; exit 1; }
    else
        wait $pid || { cat train.log; exit 1; }
        done=1
    fi
done
# Every kill that waits falls after one more step.
[ $advanced -ge $((kills / 2)) ] || { echo "only $advanced of $moments kills fell after a new step"; exit 1; }
step=$(printf 'step-%06d' $steps)
for file in model.safetensors state.safetensors config.json prior.safetensors; do
    cmp "alone/$step/$file" "killed/$step/$file" || { echo "the killed run ended with other bits: $file"; exit 1; }
done
# The log of the run that was killed is whole too, apart from clock times.
lines() { grep -oE '"step":[0-9]+|"(loss|held_out_loss)":[^,]*' "$1/log.jsonl"; }
cmp <(lines alone) <(lines killed) || { echo "the logs differ"; exit 1; }
echo "crash test: after $moments kills, $advanced of them after a new step, the bits are the same"

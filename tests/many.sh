#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests several processes as a user meets them: mpirun -n N ./train. Every model family, in f32 and bf16, is trained by
# several processes, stopped, and resumed by another number of them; it must end with the bits of the run of one process.
# ./evaluate and ./generate must print the same as one process. Then one process is killed, stopped or asked to stop.
# MANY=all tries every number of processes with every family, and KILLS=100 kills that many processes; without them, the
# test takes a minute on two cores. Needs mpirun (make deps-mpi); without it, nothing is tested.
. "$(dirname "$0")/command_line.sh"
root=$PWD build=$PWD/${BUILD:-build/release} kills=${KILLS:-4}
if ! type -P mpirun > /dev/null || [ ! -e "$build/libmasquerade_mpi.so" ]; then
    echo "skipped: there is no mpirun, or no libmasquerade_mpi.so: make deps-mpi, then make"
    exit 0
fi
cd "$folder"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_pml=ob1  # OpenMPI then starts in half the time

# Sentences of 1 to 12 words, and pairs.
awk 'BEGIN { split("red blue green white black grey box cup lamp ring bell door", w); srand(3)
             for (i = 0; i < 300; i++) {
                 line = ""
                 for (j = 0; j <= i % 12; j++) line = line (j ? " " : "") w[1 + int(rand() * 12)]
                 print line "\t" w[1 + i % 12] " " w[1 + i % 5] } }' > pairs.tsv
cut -f1 pairs.tsv > sources
small='width=32 heads=2 inner=64 batch_tokens=300 warmup=5 schedule_start=10 schedule_steps=100 parts=5'
words='vocabulary=64 max_length=16'
declare -A settings=(
    [univae]="layers=3 latent_layers=2 latent_kinds=vq,gaussian codes=5 word_dropout=0.1 dropout=0.1 $small $words"
    [unilm]="layers=2 dropout=0.1 attention_dropout=0.1 ema=0.9 $small $words --data pairs.tsv"
    [seq2seq]="layers=2 dropout=0.1 optimiser=apollo learning_rate=0.05 $small $words max_target=8 --data pairs.tsv"
    [insertion]="layers=2 dropout=0.1 $small $words max_target=8 --data pairs.tsv"
    [classify]="task=recall layers=2 dropout=0.1 $small"
    [flow]='points=moons flow_actnorm=true batch_rows=64 warmup=5 schedule_start=10 schedule_steps=100 parts=5'
)
declare -A written=([univae]='--reconstruct' [flow]='--count 300')  # what ./generate is asked
train() { "$root/train" --device cpu "$@"; }
# many N ARGUMENT...: N processes of one thread each, without the long notices of mpirun
many() { many_of train "$@"; }
many_of() {
    local program=$1 count=$2
    shift 2
    mpirun -q -n "$count" "$root/$program" --device cpu --threads 1 "$@"
}
# has NAME PART TEXT: checks that the text contains the part
has() { case "$3" in *"$2"*) is "$1" 1 1 ;; *) is "$1" "$2" "$3" ;; esac; }
# ranks FOLDER [VARIABLE]: a line "PID RANK" for each process that trains into this folder
ranks() { pgrep -f -- "--out $1( |\$)" | while read -r pid; do
    tr '\0' '\n' < /proc/$pid/environ 2> /dev/null | sed -n "s/^${2:-OMPI_COMM_WORLD_RANK}=/$pid /p"; done; }
# lines FILE: the log of a run without clock times
# same_run NAME RUN RUN: both runs have the same bits after step 50, and the same log
same_run() {
    local file
    for file in "$2"/step-000050/*; do
        [ "${file##*/}" = config.json ] && continue  # names the run
        cmp -s "$file" "$3/step-000050/${file##*/}"
        is "$1: ${file##*/}" 0 $?
    done
    is "$1: log" "$(lines "$2/log.jsonl")" "$(lines "$3/log.jsonl")"
}

families=$(families_of "$root/inspect")
has 'families' 'univae' "$families"
turn=0
for family in $families; do
    for precision in f32 bf16; do
        run="$family --precision $precision ${settings[$family]:-parts=5} save_every=25 --seed 3"
        if [ "$family" = flow ]; then  # computes in f32
            [ $precision = f32 ] || continue
            run=${run/--precision f32/}
        fi
        [[ $run == *--data* || $family == classify || $family == flow ]] || run+=" --data pairs.tsv"
        # shellcheck disable=SC2086
        train $run --threads 2 --steps 50 --out alone > said 2>&1 || cat said
        counts=(2 3 4 8)
        first=${counts[turn % 4]} second=$((counts[turn % 4] % 4 + 1))
        [ "${MANY:-}" = all ] || counts=()
        for count in "${counts[@]}"; do
            name="$family in $precision by $count processes"
            # shellcheck disable=SC2086
            many $count $run --steps 50 --out shared > said 2>&1
            is "$name: status" 0 $?
            same_run "$name" alone shared
            rm -rf shared
        done
        if [ $precision = f32 ]; then
            count=$((turn % 3 + 2))
            for program in 'evaluate --limit 250 --json' "generate ${written[$family]:-}"; do
                # shellcheck disable=SC2086
                set -- $program
                "$root/$1" --device cpu --threads 1 alone "${@:2}" < sources > said.1 2> errors.1
                status=$?
                many_of "$1" $count alone "${@:2}" < sources > said 2> errors
                is "./$program of $family by $count processes: status" $status $?
                is "./$program of $family by $count processes" "$(cat said.1)" "$(cat said)"
                is "./$program of $family by $count processes: errors" "$(cat errors.1)" "$(cat errors)"
            done
        fi
        name="$family in $precision by $first, then $second"
        # shellcheck disable=SC2086
        many $first $run --steps 25 --out shared > said 2>&1
        many $second --resume shared --steps 50 > said 2>&1
        is "$name: status" 0 $?
        same_run "$name" alone shared
        rm -rf alone shared
        turn=$((turn + 1))
    done
done
# GPUs, which simulated ones play: they read the results of a step after the next one is requested. Gradients go through
# the host, or by a simulated NCCL. torchrun starts processes without MPI; here a function plays torchrun.
torchrun() {
    local count=$1 rank status=0 started=()
    shift
    for rank in $(seq 0 $((count - 1))); do
        RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$count TORCHELASTIC_RUN_ID=test MASTER_ADDR=127.0.0.1 \
            MASTER_PORT=$((20000 + $$ % 20000)) "$@" > "said.$rank" 2>&1 &
        started+=($!)
    done
    for rank in "${started[@]}"; do wait "$rank" || status=$?; done
    cat said.? >&2
    return $status
}
run="univae ${settings[univae]} --data pairs.tsv --precision bf16"
# shellcheck disable=SC2086
train $run --steps 50 --out alone > said 2>&1
gpus() { MASQUERADE_CUDA=$build/fake_cuda.so MASQUERADE_FAKE_OPEN=1 "$@"; }
for start in 'none mpirun -q -n 2' 'none mpirun -q -n 3' "$build/fake_nccl.so mpirun -q -n 2" \
    "$build/fake_nccl.so mpirun -q -n 3" "$build/fake_nccl.so torchrun 4"; do
    # shellcheck disable=SC2086
    set -- $start
    # shellcheck disable=SC2086
    MASQUERADE_NCCL=$1 gpus "${@:2}" "$root/train" --device cuda --threads 1 $run --steps 50 --out shared > said 2>&1
    is "simulated GPUs, $start: status" 0 $?
    same_run "simulated GPUs, $start" alone shared
    case $1 in none) has "$start" 'without NCCL, gradients pass through' "$(cat said)" ;; *) is "$start: notes" '' "$(grep '^note: .*NCCL' said)" ;; esac
    rm -rf shared
done
rm -f said.?
# A process that hangs: the others end, although the communicator of NCCL is broken.
# shellcheck disable=SC2086
MASQUERADE_NCCL=$build/fake_nccl.so gpus torchrun 3 "$root/train" --device cuda --threads 1 $run --minutes 1 \
    --out $PWD/hangs > said 2>&1 & launched=$!
until grep -qs step said.0 || ! kill -0 $launched 2> /dev/null; do sleep 0.1; done
hanging=$(ranks $PWD/hangs RANK | awk '$2 == 2 { print $1 }')
kill -STOP "$hanging"
for pid in $(ranks $PWD/hangs RANK | awk '$2 != 2 { print $1 }'); do
    timeout 10 tail -s 0.1 --pid="$pid" -f /dev/null
    is "a process of torchrun hangs: process $pid has ended" 1 "$(kill -0 "$pid" 2> /dev/null; echo $?)"
done
kill -KILL "$hanging"
wait $launched
has 'a process of torchrun hangs' 'the exchange with other processes has failed: remote process exited' "$(cat said)"
rm -rf alone hangs said.?
# One process computes all parts if the user names one.
run="unilm ${settings[unilm]} parts=1 save_every=1"
# shellcheck disable=SC2086
train $run --steps 50 --out one > said 2>&1
# shellcheck disable=SC2086
many 2 $run --steps 50 --out shared > said 2>&1
same_run 'one part, two processes' one shared
has 'one part, two processes' 'warning: parts=1: a batch has fewer parts than there are processes' "$(cat said)"
is 'run.json: processes' 2 "$(python3 -c 'import json; print(json.load(open("shared/run.json"))["processes"])')"
rm -rf shared

# A signal to any of the processes stops all of them after the same step.
run="unilm ${settings[unilm]}"
started() { local i; for i in $(seq 200); do compgen -G "$1/step-*" > /dev/null && return; sleep 0.1; done; }
# shellcheck disable=SC2086
many 3 $run save_every=5 --minutes 5 --out $PWD/asked > said 2>&1 & launched=$!
started asked
kill -TERM "$(ranks $PWD/asked | awk '$2 == 2 { print $1 }')"
wait $launched
is 'SIGTERM to process 2: status' 0 $?
has 'SIGTERM to process 2' 'stopped as asked after' "$(cat said)"
steps=$(sed -n 's/^stopped as asked after \([0-9]*\) steps.*/\1/p' said)
# shellcheck disable=SC2086
train $run save_every=5 --steps "$steps" --out alone > /dev/null 2>&1
step=$(printf 'step-%06d' "$steps")
cmp -s alone/$step/state.safetensors asked/$step/state.safetensors
is 'SIGTERM to process 2: bits' 0 $?
rm -rf alone asked

# A process that hangs is named.
# shellcheck disable=SC2086
many 3 $run save_every=5 --minutes 5 --patience 1 --out $PWD/hangs > said 2>&1 & launched=$!
started hangs
kill -STOP "$(ranks $PWD/hangs | awk '$2 == 2 { print $1 }')"
timeout 20 tail -s 0.1 --pid=$launched -f /dev/null
wait $launched
is 'a process hangs: status' 1 $?
is 'a process hangs' 'error: process 2 of 3 has not answered process 0 for 1 s' "$(grep -o 'error: .* s:' said | sed 's/:$//')"
rm -rf hangs

# A process that is killed is named, in one line.
# shellcheck disable=SC2086
limit=60 many 3 $run save_every=5 --minutes 5 --out $PWD/dies > said 2>&1 & launched=$!
started dies
kill -KILL "$(ranks $PWD/dies | awk '$2 == 1 { print $1 }')"
wait $launched
is 'a process dies' 'error: process 1 of 3 has ended without a message' "$(sed -n 's/.*\(error: .*\) (PID [0-9]*)\([^,]*\),.*/\1\2/p' said)"
rm -rf dies

# ended PID: succeeds if the process has ended. A process that mpirun has not waited for, because mpirun itself hangs, has
# the state Z and has ended, too.
ended() { ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }
# A process that is killed ends the others within ten seconds. The run can be resumed, and ends with the same bits.
# shellcheck disable=SC2086
train $run save_every=5 --steps 300 --out alone > /dev/null 2>&1
RANDOM=${SEED:-$$} killed=0
for _ in $(seq $((3 * kills))); do
    [ $killed -lt "$kills" ] || break
    arguments="$run save_every=5 --out $PWD/killed"
    compgen -G 'killed/step-*' > /dev/null && arguments="--resume $PWD/killed"
    # shellcheck disable=SC2086
    limit=30 many 3 $arguments --steps 299 > said 2>&1 & launched=$!
    # The three processes, once mpirun has started all of them.
    until all=$(pgrep -P "$(pgrep -P $launched -x mpirun)" -f "^$root/train" 2> /dev/null) && [ "$(wc -l <<< "$all")" = 3 ] ||
        ! kill -0 $launched 2> /dev/null; do sleep 0.02; done
    sleep "0.$((RANDOM % 9))"
    victim=$(shuf -n 1 <<< "$all")
    rank=$({ tr '\0' '\n' < "/proc/$victim/environ"; } 2> /dev/null | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    [ -n "$victim" ] && kill -KILL "$victim" 2> /dev/null && killed=$((killed + 1))
    for pid in $all; do
        for _ in $(seq 100); do ended "$pid" && break; sleep 0.1; done
        ended "$pid"
        is "kill $killed: process $pid has ended" 0 $?
    done
    wait $launched 2> /dev/null
    # No line if it dies before all have met, or after the last step.
    is "kill $killed: lines that do not name process $rank" '' "$(grep -a error: said | grep -v "process $rank of 3 (PID $victim) has ended")"
    is "kill $killed: more than one line" 1 "$(($(grep -ac error: said) < 2))"
done
if compgen -G 'killed/step-*' > /dev/null; then arguments="--resume $PWD/killed"; else arguments="$run save_every=5 --out $PWD/killed"; fi
# shellcheck disable=SC2086
many 2 $arguments --steps 300 > said 2>&1
cmp -s alone/step-000300/state.safetensors killed/step-000300/state.safetensors
is "bits after $killed kills (RANDOM=${SEED:-$$})" 0 $?

# A job of docs/examples/many.sbatch whose processes receive SIGTERM before its time is over, and that is then submitted
# again, has the bits of a job without a stop. The variables are those that Slurm sets, and mpirun plays srun.
mkdir bin
cat > bin/srun << 'END'
#!/usr/bin/env bash
[ "$1 $2" = '--mpi=pmix --cpus-per-task=1' ] || { echo "error: srun $*"; exit 1; }
exec timeout -k 5 120 mpirun -q -n "$SLURM_NTASKS" "${@:3}"
END
chmod +x bin/srun
job() {  # job FOLDER: its run has the name FOLDER, by which ranks() finds its processes
    ln -sf "$root/train" train
    # shellcheck disable=SC2086
    PATH=$PWD/bin:$PATH SLURM_NTASKS=2 SLURM_CPUS_PER_TASK=1 NAME=$PWD/$1 STEPS=300 \
        exec bash "$root/docs/examples/many.sbatch" $run --device cpu save_every=100000
}
(trap - EXIT; job job-straight > said 2>&1)
is 'a job: status' 0 $?
is 'a job: processes' 2 "$(python3 -c 'import json; print(json.load(open("job-straight/run.json"))["processes"])')"
(trap - EXIT; job job-stopped > said 2>&1) & launched=$!
for _ in $(seq 400); do [ -s job-stopped/log.jsonl ] && break; sleep 0.02; done
kill -TERM $(ranks $PWD/job-stopped | cut -d ' ' -f 1)  # Slurm sends the signal to all of them
wait $launched
is 'a job that is stopped: status' 0 $?
has 'a job that is stopped' 'stopped as asked after' "$(cat said)"
(trap - EXIT; job job-stopped > said 2>&1)
is 'a job that is submitted again: status' 0 $?
has 'a job that is submitted again' 'done after 300 steps' "$(cat said)"
for file in model.safetensors state.safetensors; do
    cmp -s job-straight/step-000300/$file job-stopped/step-000300/$file
    is "a job that is submitted again: $file" 0 $?
done
rm -rf job-straight job-stopped

# Errors: one line, whatever the number of processes.
refuses 'a wrong setting' 2 'error: unknown setting widht' many 4 widht=3
refuses 'no such text' 1 'nowhere.txt' many 4 --data nowhere.txt
refuses 'processes differ' 2 'error: the processes differ' \
    mpirun -q -n 1 "$root/train" --device cpu $run --steps 2 --out x : -n 1 "$root/train" --device cpu $run --steps 3 --out x
mkdir -p slow fast && echo '{"learning_rate": 0.001}' > slow/config && echo '{"learning_rate": 1}' > fast/config
ln -s ../pairs.tsv slow && ln -s ../pairs.tsv fast
refuses 'the settings of processes differ' 2 'error: the processes differ' mpirun -q \
    -n 1 -wdir "$PWD/slow" "$root/train" --device cpu $run --steps 2 --config config --out x : \
    -n 1 -wdir "$PWD/fast" "$root/train" --device cpu $run --steps 2 --config config --out x
rm -rf slow fast
MASQUERADE_MPI=$folder/none.so refuses 'no such library' 1 'error: the MPI library' many 2 $run --steps 2 --out x
MASQUERADE_NCCL=none refuses 'torchrun without NCCL' 1 'exchange by NCCL, but no libnccl.so.2 can be opened' \
    gpus torchrun 2 "$root/train" --device cuda $run --steps 2 --out x
refuses 'torchrun without GPUs' 1 'and NCCL works on GPUs only: give --device cuda' \
    torchrun 2 "$root/train" --device cpu $run --steps 2 --out x
refuses 'torchrun without an address' 1 'MASTER_ADDR and MASTER_PORT, a number below 65535, of which one is missing' env -u MASTER_ADDR RANK=0 TORCHELASTIC_RUN_ID=test \
    WORLD_SIZE=2 LOCAL_RANK=0 MASQUERADE_NCCL=$build/fake_nccl.so MASQUERADE_CUDA=$build/fake_cuda.so "$root/train" --device cuda
MASQUERADE_FAKE_FAULT=shared gpus mpirun -q -n 2 "$root/train" --device cuda --threads 1 $run --steps 2 --out x > said 2>&1
has 'two processes, one GPU' 'note: 2 processes share 1 GPU; without NCCL' "$(cat said)"
rm -rf x
refuses 'a prior is fitted by one process' 2 'error: --fit-prior is work for one process' many 2 --fit-prior killed
# A program that was not started by mpirun needs no library.
MASQUERADE_MPI=$folder/none.so train $run --steps 2 --out x > said 2>&1
is 'without mpirun: status' 0 $?
cd "$root"
finish many

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gpu_half_hour.sh STAGE OUT [PACK [NAME ...]]: runs one stage of the tests and measurements on a GPU, in nine minutes.
#   1  every op on the ladder, whole models, a few ops under compute-sanitizer, the speed of this engine
#   2  this engine beside eager PyTorch     3  beside torch.compile, in one setting
#   4  runs the items that failed so far in OUT, or the items NAME, again in several ways that help to find the cause
#   5  the kernels of a few training steps, profiled by Nsight Compute
# Longer stages: test, every op under compute-sanitizer (make gpu-test); bench, all settings of PyTorch (gpu-bench).
# A stage writes at most 8 files to OUT: stage-N.log, stage-N.json, stage-N-MEASUREMENT.json. Each file is complete
# at any time.
# PACK: the folder of the programs, by default build/gpu-pack (gpu_pack.sh) or build/release. Programs that do not start
# are built.
# Environment: GPU_PYTHON, a Python with torch; GPU_SECONDS, seconds per stage; GPU_LIMIT, seconds per case; GPU_JOBS,
# cases at a time; GPU_BRIEF=1, tiny sizes to try the script itself.
# If an item fails or there is no GPU, prints one line that says so, and exits with status 1. Ctrl-C ends the stage; the
# files in OUT stay.
set -uo pipefail
usage() { sed -n '3,8p' "$0" | cut -c 3- >&2; exit 2; }
[ $# -ge 2 ] || usage
stage=$1 out=$(realpath -m "$2") pack=${3-} commit='' gpu=''
[ -z "$pack" ] || pack=$(realpath -m "$pack")
shift $(($# < 3 ? $# : 3))
cd "$(dirname "$0")/../.." || exit 1
case $stage in 1 | 4 | test) needs=(tests bench) ;; [235] | bench) needs=(bench) ;; *) usage ;; esac
case $stage in [1-5]) seconds=540 limit=60 ;; *) seconds=36000 limit=900 ;; esac
seconds=${GPU_SECONDS:-$seconds} limit=${GPU_LIMIT:-$limit}
deadline=$seconds jobs=1
. tools/make/gpu_items.sh

# until_percent PERCENT: sets the deadline of the following items to PERCENT of the stage's time
until_percent() { deadline=$((seconds * $1 / 100)); }

# ---- what is here ---------------------------------------------------------------------------------------------------
# no_gpu WHY: prints why no GPU can be used, and exits. WHY is the error line of ./bench or another reason
no_gpu() {
    local why=${1#error: --device cuda: }
    why=${why#no GPU answers: }
    echo "error: stage $stage: no GPU answers: ${why%; --device cpu*}; nothing was run" >&2
    exit 1
}

programs_start() {
    local program
    for program in "${needs[@]}"; do "$pack/$program" --version >/dev/null 2>&1 || return 1; done
}
build() {
    local arch headers=$PWD/build/gpu-pack/headers
    nvidia-smi -L >/dev/null 2>&1 || no_gpu 'nvidia-smi names none'
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
    [ -d "$headers" ] || headers=${DEPS-}
    log "the programs of $pack do not start here: making them from source for sm_${arch:-90}"
    pack=$PWD/build/release
    timeout "$seconds" make ${headers:+DEPS="$headers"} CUDA_ARCHS="${arch:-90}" "${needs[@]/#/build/release/}" \
        build/release/libmasquerade_cuda.so >"$work/make" 2>&1 && programs_start && return
    tail -n 20 "$work/make" >>"$out/stage-$stage.log"
    log "error: stage $stage: the programs can be neither started nor made; $out/stage-$stage.log says why"
    exit 1
}
# cuBLASLt may be in the folders of the CUDA Toolkit or of PyTorch, which the loader does not search by default.
find_cublas() {
    local folder
    ! PATH=$PATH:/sbin ldconfig -p 2>/dev/null | grep -q libcublasLt || return 0
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib \
        $("${GPU_PYTHON:-python3}" -c 'import nvidia; print(*(p + "/*/lib" for p in nvidia.__path__))' 2>/dev/null); do
        if ls "$folder"/libcublasLt.so* >/dev/null 2>&1; then
            export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
            return
        fi
    done
}
find_python() {
    python=${GPU_PYTHON:-python3}
    timeout 120 "$python" -c 'import torch' >/dev/null 2>&1 && return
    python=none
    log "note: ${GPU_PYTHON:-python3} does not import torch; name one that does in GPU_PYTHON"
}
# find_tool NAME: prints the path of a program of the CUDA Toolkit
find_tool() {
    local file
    for file in "$(command -v "$1")" /usr/local/cuda/bin/"$1" /opt/nvidia/nsight-compute/*/"$1"; do
        if [ -x "$file" ]; then echo "$file"; return; fi
    done
}

# ---- parts of stages -------------------------------------------------------------------------------------------------
marks=(univae-base-16k unilm-base-16k univae-small-16k univae-default)
brief=() attention=(--repeats 3) decode=()
if [ -n "${GPU_BRIEF-}" ]; then
    export MASQUERADE_SMALL_LADDER=1
    marks=(univae-default) brief=(--brief) attention=(--lengths 16 --tokens 32 --heads 2 --precision bf16 --repeats 1)
    decode=(--models unilm-default --sources 1 --beams 1 --repeats 1)
fi
setting=compiled-sdpa  # variant of PyTorch in stage 3
later=${#marks[@]}     # number of measurements still to run
sanitized=(linear_forward linear_backward attention_forward attention_backward cross_entropy_forward
    cross_entropy_backward embedding_forward embedding_backward layernorm_forward layernorm_backward)

# run_case NAME [OPTION...]: runs one test case in its own process
run_case() { start "$1" "$limit" "$pack/tests" --test-case="${1//,/\\,}" "${@:2}"; }
# sanitize TOOL NAME: runs a test case at its smallest sizes under compute-sanitizer
sanitize() {
    [ -n "$sanitizer" ] || return 0
    start "$1 $2" "$limit" env MASQUERADE_SMALL_LADDER=1 "$sanitizer" --tool "$1" --error-exitcode 9 "$pack/tests" \
        --test-case="${2//,/\\,}"
}
find_sanitizer() {
    sanitizer=$(find_tool compute-sanitizer)
    "$sanitizer" --version >/dev/null 2>&1 && return
    sanitizer=
    log 'note: compute-sanitizer does not start here; accesses and races were not looked at'
}
cases() {  # runs the test cases: the ops first, then whole models
    local all name
    jobs=${GPU_JOBS:-4}
    mapfile -t all < <(timeout 60 "$pack/tests" --list-test-cases --test-case='gpu: *' | grep '^gpu: ')
    [ ${#all[@]} -gt 0 ] || record 'gpu: *' FAILED 0 "$pack/tests has no such test case that runs here"
    until_percent 50
    for name in "${all[@]}"; do [[ $name =~ \ .*\  ]] || run_case "$name"; done
    drain
    until_percent 60
    for name in "${all[@]}"; do [[ ! $name =~ \ .*\  ]] || run_case "$name"; done
    drain
    until_percent 75
    find_sanitizer
    [ "$stage" != test ] || mapfile -t sanitized < <(printf '%s\n' "${all[@]#gpu: }")
    for name in "${sanitized[@]}"; do sanitize memcheck "gpu: $name"; sanitize racecheck "gpu: $name"; done
    drain
    until_percent 100
}
# measure NAME FILE [OPTION...]: runs one measurement, while no other command runs. Its time limit leaves 40 seconds for
# each later measurement; if too little time is left for this, all measurements get equal limits.
measure() {
    local name=$1 file=$2 left=$((deadline - SECONDS))
    shift 2
    jobs=1 shows=yes later=$((later - 1))
    start "$name" $((left > 40 * (later + 1) ? left - 40 * later : left / (later + 1))) \
        "${bench[@]}" "${name%% *}" --device cuda "$@" --save "$out/stage-$stage-$file.json"
    drain
}
measure_training() {  # measure_training [OPTION...]: measures every mark
    local mark
    for mark in "${marks[@]}"; do measure "train $mark" "train-$mark" --marks "$mark" "${brief[@]}" "$@"; done
}
measure_all() {  # measure_all [OPTION of ./bench train...]
    later=$((later + 2))
    measure_training "$@"
    measure attention attention "${attention[@]}"
    measure decode decode "${decode[@]}"
}
# again NAME: runs the item NAME again, in several ways that help to find why it failed
again() {
    local bench=("$pack/bench" "${1%% *}" --device cuda) blocking=(env CUDA_LAUNCH_BLOCKING=1)
    case $1 in
        'memcheck '* | 'racecheck '*) sanitize "${1%% *}" "${1#* }" ;;
        'gpu: '*)
            run_case "$1" --minimal=false --duration=true
            start "$1, small, waiting" "$limit" "${blocking[@]}" MASQUERADE_SMALL_LADDER=1 "$pack/tests" \
                --test-case="${1//,/\\,}" --minimal=false
            sanitize memcheck "$1" ;;
        'train '*)
            bench+=(--marks "${1#* }" --brief)
            start "$1" 90 "${bench[@]}"
            start "$1, no graph" 90 "${bench[@]}" --no-graph
            start "$1, no graph, waiting" 90 "${blocking[@]}" "${bench[@]}" --no-graph
            start "$1, deterministic products" 90 "${bench[@]}" --deterministic ;;
        attention | decode)
            local -n options=$1
            start "$1, waiting" 90 "${blocking[@]}" "${bench[@]}" "${options[@]}" ;;
        PyTorch | ncu*) log "note: $1 is not run again" ;;
        *) record "$1" FAILED 0 'is no item of a stage' ;;
    esac
    drain
}
kernels() {
    local ncu report=$work/kernels.ncu-rep
    ncu=$(find_tool ncu)
    if ! "$ncu" --version >/dev/null 2>&1; then
        log 'note: ncu does not start here; no kernel was looked at'
        return
    fi
    # The first step, which is only compared and not timed, is skipped. Part of a timed step is profiled.
    start 'ncu' 400 "$ncu" --set basic --launch-skip 1500 --launch-count "${GPU_KERNELS:-400}" --force-overwrite \
        --export "$report" "$pack/bench" train --device cuda --marks "${marks[0]}" --brief
    drain
    # shellcheck disable=SC2016
    local page=(sh -c '"$1" --import "$2" $4 > "$3.new" && mv "$3.new" "$3"' sh "$ncu" "$report")
    start 'ncu, a line for each launch' 60 "${page[@]}" "$out/stage-5-launches.csv" '--csv --page raw'
    start 'ncu, by kernel' 60 "${page[@]}" "$out/stage-5-kernels.txt" '--print-summary per-kernel'
}

# ---- the stage ------------------------------------------------------------------------------------------------------
if [ -z "$pack" ]; then
    pack=$PWD/build/gpu-pack
    [ -d "$pack" ] || pack=$PWD/build/release
fi
if programs_start; then
    find_cublas
    said=$(timeout 60 "$pack/bench" --device cuda 2>&1) || no_gpu "$said"
fi
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(cat "$out"/stage-{1,2,3,5,test}.json 2>/dev/null |
    sed -nE 's/^  \{"name": "(.*)", "result": "(FAILED|timed out|crashed)".*/\1/p' | sort -u)
mkdir -p "$out" || exit 1
rm -f "$out/stage-$stage"[.-]*
programs_start || { build; find_cublas; said=$("$pack/bench" --device cuda 2>&1) || no_gpu "$said"; }
commit=$(cat "$pack/commit" 2>/dev/null || git rev-parse --short HEAD 2>/dev/null)
gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)
log "stage $stage, $(date -u '+%F %T') UTC, commit ${commit:-unknown}, programs of $pack, ${gpu:-no word of nvidia-smi}"
write_json false

bench=("$pack/bench")
case $stage in
    1) cases; measure_all ;;
    test) cases ;;
    2 | 3 | bench)
        find_python
        [ "$python" = none ] || bench=("$python" tools/bench/compare.py --bench "$pack/bench")
        case $stage$python in
            [23]none) record "PyTorch" FAILED 0 'is in no Python here; name one in GPU_PYTHON' ;;
            2*) measure_all --variants eager,eager-sdpa ;;
            3*) measure_training --variants "$setting" ;;
            bench*) measure_all ;;
        esac ;;
    4)
        find_sanitizer
        jobs=1 shows=yes
        [ ${#names[@]} -gt 0 ] || log "note: nothing has failed so far in $out"
        for name in "${names[@]}"; do again "$name"; done ;;
    5) kernels ;;
esac
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu_bench.sh BENCH: training, attention alone and decoding on the GPU, beside PyTorch where a Python that
# has it is found. GPU_BENCH_PYTHON: that Python; GPU_BENCH_OUT: a folder for the same as JSON;
# GPU_BENCH_EAGER: do not try torch.compile. Status 1, and one line, where no GPU answers.
bench=$1
"$bench" --device cuda >/dev/null || exit 1
if [ -n "$GPU_BENCH_OUT" ]; then mkdir -p "$GPU_BENCH_OUT" || exit 1; fi

run() {  # run CASE [OPTION ...]
    echo "./bench $*" --device cuda
    case=$1
    shift
    "$bench" "$case" --device cuda "$@" ${GPU_BENCH_OUT:+--save "$GPU_BENCH_OUT/$case.json"} ||
        failed="$failed $case"
    echo
}
failed=
run train ${GPU_BENCH_PYTHON:+--peer "$GPU_BENCH_PYTHON"} ${GPU_BENCH_EAGER:+--eager}
run attention ${GPU_BENCH_PYTHON:+--peer "$GPU_BENCH_PYTHON"}
run decode ${GPU_BENCH_PYTHON:+--peer "$GPU_BENCH_PYTHON"}
if [ -n "$failed" ]; then
    echo "error: gpu-bench: not measured whole:$failed" >&2
    exit 1
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu_test.sh TESTS [CASES]: every op that the CUDA library has, on the GPU, up the ladder; then its memory accesses and
# its races under compute-sanitizer, where that starts. Status 1 where something fails or no GPU answers.
tests=$1
cases=${2:-'gpu: *'}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$tests" --test-case="$cases" | tee "$log"
if ! grep -q ' 0 failed' "$log"; then exit 1; fi
if grep -q '^0 passed' "$log" || ! nvidia-smi -L; then
    echo 'error: gpu-test: no GPU answers, nothing was tested' >&2
    exit 1
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if ! "$sanitizer" --version >/dev/null 2>&1; then
    echo 'note: compute-sanitizer does not start here; accesses and races were not looked at'
    exit 0
fi
for tool in memcheck racecheck; do
    echo "compute-sanitizer: $tool"
    MASQUERADE_SMALL_LADDER=1 "$sanitizer" --tool $tool --error-exitcode 9 "$tests" --test-case="$cases" || exit 1
done

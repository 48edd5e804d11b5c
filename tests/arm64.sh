#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles ./train and the tests for arm64 with Debian's cross compiler, and runs the tests on this machine under QEMU, file
# by file. A file may take LIMIT seconds (default: 120); one that takes longer is left aside and named at the end.
#     apt-get install g++-aarch64-linux-gnu qemu-user-static
#     tests/arm64.sh [PART]            files whose name contains PART (default: all of tests/)
# Other environment variables: BUILDS (default: build/arm64), JOBS (default: one a processor).
set -u
cd "$(dirname "$0")/.."
builds=${BUILDS:-build/arm64}
for needed in aarch64-linux-gnu-g++ qemu-aarch64-static; do
    command -v $needed > /dev/null ||
        { echo "arm64: $needed is not here: apt-get install g++-aarch64-linux-gnu qemu-user-static" >&2; exit 1; }
done
make ${JOBS:+-j$JOBS} CXX=aarch64-linux-gnu-g++ MARCH=armv8.2-a NVCC=none BUILDS="$builds" "$builds/release/train" test-program ||
    exit 1

run() { timeout "${LIMIT:-120}" qemu-aarch64-static -L /usr/aarch64-linux-gnu "$@" < /dev/null 2>&1; }
passed=0 failed=0 aside=
for file in $(find tests -name '*_test.cpp' -path "*${1:-}*" | sort); do
    out=$(TEST_THREADS=1 run "$builds/release/tests" --source-file="*$file")
    status=$?
    [ $status != 124 ] || { aside+=" $file" && continue; }
    of_file=$(tail -n 1 <<< "$out" | sed -n 's/^\([0-9]*\) passed, 0 failed.*/\1/p')
    if [ -n "$of_file" ] && { [ $status = 0 ] || grep -q '^error: no test case ran' <<< "$out"; }; then
        passed=$((passed + of_file))
    else
        failed=$((failed + 1))
        printf 'arm64: %s: status %d\n%s\n' "$file" $status "$(tail -n 40 <<< "$out")"
    fi
done
echo "arm64: $passed cases passed, $failed files with a failure${aside:+; left aside after ${LIMIT:-120} s:$aside}"
[ $failed = 0 ]

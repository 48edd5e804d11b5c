#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles ./train and the tests for arm64 with Debian's cross compiler, and runs the tests on this machine under QEMU, file
# by file. If a file takes longer than LIMIT seconds (default: 120), its cases run one by one, with the same limit for each.
# The cases that take longer are left aside and named at the end.
#     apt-get install g++-aarch64-linux-gnu qemu-user-static
#     tests/arm64.sh [PART]            files whose name contains PART (default: all of tests/)
# Other environment variables: BUILDS (default: build/arm64), JOBS (default: one a processor).
set -u
cd "$(dirname "$0")/.."
builds=${BUILDS:-build/arm64} limit=${LIMIT:-120}
for needed in aarch64-linux-gnu-g++ qemu-aarch64-static; do
    command -v $needed > /dev/null ||
        { echo "arm64: $needed is not here: apt-get install g++-aarch64-linux-gnu qemu-user-static" >&2; exit 1; }
done
make ${JOBS:+-j$JOBS} CXX=aarch64-linux-gnu-g++ MARCH=armv8.2-a NVCC=none BUILDS="$builds" "$builds/release/train" test-program ||
    exit 1

tests() { # ARGUMENT...: the tests under QEMU, at most $limit seconds long
    TEST_THREADS=1 timeout "$limit" qemu-aarch64-static -L /usr/aarch64-linux-gnu "$builds/release/tests" "$@" < /dev/null 2>&1
}
passed=0 failed=0 aside=()
# count NAME ARGUMENT...: runs the cases that the arguments select, and counts them. Returns 1 if they took too long.
count() {
    local out status
    out=$(tests "${@:2}")
    status=$?
    [ $status != 124 ] || return 1
    if [[ $(tail -n 1 <<< "$out") =~ ^([0-9]+)" passed, 0 failed" ]] &&
        { [ $status = 0 ] || grep -q '^error: no test case ran' <<< "$out"; }; then
        passed=$((passed + BASH_REMATCH[1]))
    else
        failed=$((failed + 1))
        printf 'arm64: %s: status %d\n%s\n' "$1" $status "$(tail -n 40 <<< "$out")"
    fi
}
for file in $(find tests -name '*_test.cpp' -path "*${1:-}*" | sort); do
    count "$file" --source-file="*$file" && continue
    while IFS= read -r name; do
        # A comma in a name must not end it.
        count "$file: $name" --source-file="*$file" --test-case="${name//,/\\,}" || aside+=("$file: $name")
    done < <(tests --source-file="*$file" --list-test-cases | grep -v -e '^\[doctest\]' -e '^===')
done
echo "arm64: $passed cases passed, $failed files or cases failed, ${#aside[@]} took longer than $limit s"
[ ${#aside[@]} = 0 ] || printf 'arm64: left aside: %s\n' "${aside[@]}"
[ $failed = 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles the programs and the tests for arm64 with Debian's cross compiler, and runs the tests on this machine under QEMU, file
# by file. If a file takes more than LIMIT seconds of processor time (default: 60), its cases run one by one, with the same
# limit for each. The cases that take longer are left aside and named at the end.
#     apt-get install g++-aarch64-linux-gnu qemu-user-static
#     tests/arm64.sh [PART]            files whose name contains PART (default: all)
# Other environment variables: BUILDS (default: build/arm64), JOBS (default: one a processor).
set -u
cd "$(dirname "$0")/.."
export builds=${BUILDS:-build/arm64} limit=${LIMIT:-60} jobs=${JOBS:-$(nproc)}
for needed in aarch64-linux-gnu-g++ qemu-aarch64-static; do
    command -v $needed > /dev/null ||
        { echo "arm64: $needed is not here: apt-get install g++-aarch64-linux-gnu qemu-user-static" >&2; exit 1; }
done
programs=("$builds"/release/{train,tokenize,inspect})
make "-j$jobs" CXX=aarch64-linux-gnu-g++ MARCH=armv8.2-a NVCC=none BUILDS="$builds" "${programs[@]}" test-program || exit 1
# Some tests start programs, which this machine cannot run by itself: a script of the program's name runs it under QEMU.
for program in "${programs[@]}"; do
    [ "$(head -c 4 "$program" | tail -c 3)" = ELF ] || continue
    mv "$program" "$program.arm64"
    printf '#!/bin/sh\nexec qemu-aarch64-static -L /usr/aarch64-linux-gnu "$(dirname "$0")/%s.arm64" "$@"\n' \
        "$(basename "$program")" > "$program"
    chmod +x "$program"
done

tests() { # ARGUMENT...: the tests under QEMU; the status is 152 (or 124) if they take more time than they may
    (ulimit -t "$limit"
     TEST_THREADS=1 exec timeout $((10 * limit)) qemu-aarch64-static -L /usr/aarch64-linux-gnu "$builds/release/tests" \
         "$@" < /dev/null 2>&1)
}
# run NAME ARGUMENT...: runs the cases that the arguments select. Prints "passed COUNT" or "failed NAME", with the end of the
# output. Returns 1 if they took too long.
run() {
    local out status
    out=$(tests "${@:2}")
    status=$?
    case $status in 124|137|152) return 1 ;; esac
    if [[ $(tail -n 1 <<< "$out") =~ ^([0-9]+)" passed, 0 failed" ]] &&
        { [ $status = 0 ] || grep -q '^error: no test case ran' <<< "$out"; }; then
        echo "passed ${BASH_REMATCH[1]}"
    else
        printf 'failed %s: status %d\n%s\n' "$1" $status "$(tail -n 40 <<< "$out" | sed 's/^/    /')"
    fi
}
run_file() { # FILE: runs all its cases, and prints in one piece what run() prints, and "aside NAME" for those that take long
    local file=$1 name
    {
        run "$file" --source-file="*$file" && return
        while IFS= read -r name; do
            # A comma in a name must not end it.
            run "$file: $name" --source-file="*$file" --test-case="${name//,/\\,}" || echo "aside $file: $name"
        done < <(tests --source-file="*$file" --list-test-cases | grep -v -e '^\[doctest\]' -e '^===')
    } > "$results/${file//\//-}"
}
export -f tests run run_file
results=$(mktemp -d) && export results
trap 'rm -rf "$results"' EXIT
# The files are those that the tests name: the cases of the ladder belong to engine/ops/ops.h.
limit=600 tests --list-test-cases --reporters=xml | grep -o 'filename="[^"]*"' | cut -d '"' -f 2 | sort -u | grep -F "${1:-.}" |
    xargs -P "$jobs" -I {} bash -c 'run_file {}'

passed=$(cat "$results"/* | awk '/^passed/ { sum += $2 } END { print sum + 0 }')
cat "$results"/* | grep -e '^failed' -e '^    '
failed=$(cat "$results"/* | grep -c '^failed')
aside=$(cat "$results"/* | grep -c '^aside')
echo "arm64: $passed cases passed, $failed files or cases failed, $aside took more than $limit s"
cat "$results"/* | grep '^aside'
[ "$passed" -gt 0 ] && [ "$failed" = 0 ]

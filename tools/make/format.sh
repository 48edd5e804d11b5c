#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# format.sh [check]: formats all C++ and CUDA code with .clang-format. `check` changes nothing, but lists the files that
# would change and fails if there are any. Only version 14 of clang-format is accepted, because other versions break
# lines differently.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=14
for program in clang-format-$version clang-format; do
    command -v $program > /dev/null && [[ $($program --version) == *"version $version."* ]] && break
    program=
done
if [ -z "$program" ]; then
    echo "format: needs clang-format $version (Debian 12 and Ubuntu 22.04: clang-format-$version, or pip install clang-format==$version.0.6)" >&2
    exit 1
fi
if ! listed=$(git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh') || [ -z "$listed" ]; then
    echo 'format: git lists no files here; run it in a clone of the repository' >&2
    exit 1
fi
mapfile -t files <<< "$listed"
if [ "${1:-}" = check ]; then
    status=0
    found=$($program --dry-run --ferror-limit=1 --Werror "${files[@]}" 2>&1) || status=1
    sed -n 's/^\(.*\):[0-9]*:[0-9]*: error: .*/\1: not formatted; run make format/p' <<<"$found" | sort -u >&2
    exit $status
else
    $program -i "${files[@]}"
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/student.sh FOLDER: writes the tree that students get to FOLDER, which must be new or empty. The tree is this
# one without the solutions and what needs them, with the starting point of each lab. `make lab LAB=02` works there.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
to=${1:-}
[ -n "$to" ] || { echo 'error: which folder? make student DIR=../students' >&2; exit 2; }
if [ -e "$to" ] && { [ ! -d "$to" ] || [ -n "$(ls -A "$to")" ]; }; then
    echo "error: $to is there and not empty; name a new folder" >&2
    exit 1
fi
mkdir -p "$to"
to=$(cd "$to" && pwd)
cd "$root"
[[ $to/ != "$root"/* ]] || { rmdir "$to"; echo "error: $to is inside of this tree; name a folder outside of it" >&2; exit 1; }
is_git=$([ "$(git rev-parse --show-toplevel 2> /dev/null)" = "$root" ] && echo yes || true)
# Prints the files of the tree, each ended by a zero byte. Without git, all that the build has not made.
files() {
    if [ "$is_git" ]; then git ls-files -z
    else find . -type f -not -path './build*' -not -path './.git/*' -not -perm /111 -print0; find tests tools data -type f -perm /111 -print0
    fi
}
files | grep -zvE '^(\./)?(docs/labs/solutions/|tests/(labs|grade)\.sh$|tools/make/student\.sh$|\.ci/|\.git(/|hub/|-))' | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"  # a file that is deleted, but still known to git
done | xargs -0 cp --parents -P -t "$to"
# The pages name what is left out.
printf '%s\tdocs/course.md\tof the teacher\n' docs/labs/solutions/ 02.cpp >> "$to/tests/book/foreign.txt"
# The starting points, even if the teacher has solved a lab here.
if [ "$is_git" ]; then
    for lab in docs/labs/*/lab.cpp; do git show "HEAD:$lab" > "$to/$lab"; done
fi
for solution in docs/labs/solutions/*.cpp; do
    lab=docs/labs/$(basename "$solution" .cpp)/lab.cpp
    if [ "$(grep -v '^//' "$to/$lab")" = "$(grep -v '^//' "$solution")" ]; then
        rm -rf "$to"
        echo "error: $lab is the solution, not the starting point; check the starting point out first" >&2
        exit 1
    fi
done
echo "wrote $to: no solutions, and where each lab starts. There: make deps && make && make lab LAB=01"

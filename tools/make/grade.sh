#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/grade.sh FOLDER...: a line for each submission, a column for each lab that has a check: its points.
# A submission is a clone of the repository, or a folder with 02.cpp and so on. Only the files that
# the student was to write are used; checks are those of this tree, so an edited one changes nothing, and is named. Each program gets 60 seconds (LAB_SECONDS) and 2 GiB and,
# where `unshare` may do it, no network. What students send is a program: run this as a user who owns nothing, or in a container.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { echo 'usage: tools/make/grade.sh FOLDER...' >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile() { timeout 60 "$@" 2> "$work/error"; }
alone=()
unshare -rn true 2> /dev/null && alone=(unshare -rn)
run() { (ulimit -v 2097152; cd "$work" && timeout "${LAB_SECONDS:-60}" "${alone[@]}" "$1" < /dev/null 2> /dev/null); }

labs=()
word=" $(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')"
for check in "$root"/docs/labs/*/check.cpp; do
    lab=$(basename "$(dirname "$check")")
    labs+=("$lab")
    flags=-O0
    [ -f "${check%check.cpp}flags" ] && flags=$(sed 's/library//' "${check%check.cpp}flags")
    compile "${CXX:-g++}" -std=c++17 -I "$root" $flags -DLAB_WORD="\"$word\"" -c "$check" -o "$work/check-$lab.o" || { cat "$work/error" >&2; exit 1; }
done
printf '%-30s' submission
printf '%10s' "${labs[@]}"
printf '\n'
for folder in "$@"; do
    [ -d "$folder" ] || { echo "error: $folder is no folder" >&2; exit 1; }
    notes=
    printf '%-30s' "$(basename "$(realpath "$folder")")"
    for lab in "${labs[@]}"; do
        own=$folder/docs/labs/$lab
        file=$own/lab.cpp
        [ -f "$file" ] || file=$folder/$lab.cpp
        if [ -f "$own/check.cpp" ] && ! cmp -s "$own/check.cpp" "$root/docs/labs/$lab/check.cpp"; then notes+=" $lab: its check was edited;"; fi
        if [ ! -f "$file" ]; then points=-
        elif ! compile "$root/tools/make/lab.sh" "$lab" "$work/check-$lab.o" "$file" "$work/lab"; then points=error
        else
            said=$(run "$work/lab")
            status=$?
            points=$(grep -oE "^[0-9]+ of [0-9]+ points$word\$" <<< "$said" | tail -n 1 | sed -E 's/ of /\//; s/ points.*//')
            [ $status = 124 ] && points=late
            [ -n "$points" ] || points=failed
        fi
        printf '%10s' "$points"
    done
    printf '%s\n' "${notes:+  $notes}"
done

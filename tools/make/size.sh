#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# size.sh [COMMIT]: the size of the code by folder, of the working tree or of a commit: files, tokens and kilobytes. A token
# is a word, a number or one punctuation character; comments are not counted, and neither are line breaks. C++ and CUDA only.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$PWD
if [ $# = 1 ]; then
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    git archive "$1" | tar -x -C "$tree"
fi
cd "$tree"
# without_comments FILE ...: a // that follows a colon or a quote is part of a string.
without_comments() { sed -E 's@(^|[^:"])//.*@\1@' "$@"; }
row() { printf '%-18s %6s %9s %9s\n' "$@"; }

row folder files tokens kilobytes
core='0 0 0' all='0 0 0'
for folder in input engine/{base,tensor,math,ops,tape,nn,io,train,check} tokenizer data models/{masks,batch,latent,nets,density,tasks,writing,scoring,runs} tools docs tests; do
    mapfile -t files < <(find "$folder" \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -not -path '*/build/*' | sort)
    [ ${#files[@]} -gt 0 ] || continue
    tokens=$(without_comments "${files[@]}" | grep -oE '[A-Za-z0-9_]+|[^A-Za-z0-9_[:space:]]' | wc -l)
    bytes=$(cat "${files[@]}" | wc -c)
    row "$folder" ${#files[@]} "$tokens" $((bytes / 1000))
    add() { echo $(($1 + ${#files[@]})) $(($2 + tokens)) $(($3 + bytes)); }
    # shellcheck disable=SC2086
    all=$(add $all)
    # shellcheck disable=SC2086
    case $folder in docs | tests) ;; *) core=$(add $core) ;; esac
done
total() { row "$1" "$2" "$3" $(($4 / 1000)); }
# shellcheck disable=SC2086
total 'without the last 2' $core
# shellcheck disable=SC2086
total all $all

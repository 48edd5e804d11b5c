#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# size.sh [COMMIT]: prints the size of the code (C++, CUDA, and the Python of the library) by folder, in files, tokens and
# kilobytes, for the working tree or a commit. A token is a word, a number or one punctuation character; line breaks and
# comments that begin with // are not counted.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$PWD
if [ $# = 1 ]; then
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    git archive "$1" | tar -x -C "$tree"
fi
cd "$tree"
# without_comments FILE ...: removes // comments. A // after a colon or a quote is part of a string and stays.
without_comments() { sed -E 's@(^|[^:"])//.*@\1@' "$@"; }
folders=(input engine/{base,tensor,math,ops,tape,nn,io,train,check} tokenizer data
    models/{masks,batch,latent,nets,density,tasks,writing,scoring,runs} tools library python docs tests)
for folder in "${folders[@]}"; do
    [ -d "$folder" ] || continue
    mapfile -t files < <(find "$folder" \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -path 'python/*.py' \) |
        sort)
    [ ${#files[@]} -gt 0 ] || continue
    tokens=$(without_comments "${files[@]}" | grep -oE '[A-Za-z0-9_]+|[^A-Za-z0-9_[:space:]]' | wc -l)
    echo "$folder ${#files[@]} $tokens $(cat "${files[@]}" | wc -c)"
done | awk '
    function row(name, files, tokens, bytes) { printf "%-18s %6s %9s %9s\n", name, files, tokens, bytes }
    BEGIN { row("folder", "files", "tokens", "kilobytes") }
    {
        row($1, $2, $3, int($4 / 1000))
        for (i = 2; i <= 4; i++) { all[i] += $i; if ($1 !~ /^(docs|tests)$/) core[i] += $i }
    }
    END {
        row("without the last 2", core[2], core[3], int(core[4] / 1000))
        row("all", all[2], all[3], int(all[4] / 1000))
    }'

#!/bin/sh
# SPDX-License-Identifier: MIT
# ptxas_table.sh [CUDA_ARCHS='80 90']: compiles the CUDA half anew and prints, as a table of Markdown, what ptxas says of
# every kernel: registers of a thread on each architecture, bytes of shared memory beside those that a launch asks for,
# and the most bytes spilled, stored and loaded, on any of them. Status 1 where a kernel spills.
set -eu
cd "$(dirname "$0")/../.."
folder=build/ptxas
log=$(mktemp)
trap 'rm -f "$log"' EXIT

rm -rf $folder
make -O "$@" CUDA_BUILD=$folder NVCC_STRICT='-Xptxas -v' $folder/libmasquerade_cuda.so > "$log" 2>&1 ||
    { cat "$log" >&2; exit 1; }

# NAME ARCHITECTURE REGISTERS SHARED SPILLED
awk -F"'" '
    /Compiling entry function/ { name = $2; arch = $4 }
    /bytes spill stores/ { split($0, n, /[^0-9]+/); spilled = n[3] + n[4] }
    / Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
        shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
        print name "\t" arch "\t" registers "\t" shared "\t" spilled
    }' "$log" | c++filt | awk -F'\t' '
    {
        gsub(/\(anonymous namespace\)::|masquerade::(cuda::)?|std::/, "", $1)
        sub(/^void /, "", $1); sub(/\(.*/, "", $1); gsub(/ >/, ">", $1)
        kernels[$1]; archs[$2]
        registers[$1, $2] = $3
        if ($4 > shared[$1]) shared[$1] = $4
        if ($5 > spilled[$1]) spilled[$1] = $5
        if ($5 > 0) bad = 1
    }
    END {
        count = 0
        for (a in archs) order[++count] = a
        for (i = 1; i < count; i++)
            for (k = i + 1; k <= count; k++)
                if (substr(order[k], 4) + 0 < substr(order[i], 4) + 0) { t = order[i]; order[i] = order[k]; order[k] = t }
        line = "| kernel |"; rule = "|---|"
        for (i = 1; i <= count; i++) { line = line " " order[i] " |"; rule = rule "---|" }
        print line " shared bytes | spilled |"; print rule "---|---|"; fflush()
        for (k in kernels) {
            line = "| `" k "` |"
            for (i = 1; i <= count; i++) line = line " " registers[k, order[i]] " |"
            print line " " shared[k] + 0 " | " spilled[k] + 0 " |" | "sort"
        }
        close("sort")
        exit bad
    }'

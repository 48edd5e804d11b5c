#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_layers.sh: checks the #include lines. A folder may include only itself and the folders before it in the list
# below. Only a few files may use CUDA, and files that nvcc compiles may not include libraries that nvcc cannot read.
# Prints nothing if all is well.
set -euo pipefail
cd "$(dirname "$0")/.."
wrong=0

folders=$(ls -d input engine tokenizer data models tools library tests 2>/dev/null || true)
files=$(find $folders -regex '.*\.\(h\|cpp\|cu\|cuh\)')

# One line "FILE INCLUDED" for every #include "..." line.
grep -HoE '^ *# *include "[^"]+"' $files | sed -E 's/^([^:]+):.*"(.*)"/\1 \2/' | sort -u | awk '
    function folder(path) {
        return match(path, /^(engine|models)\/[^\/]+\//) || match(path, /^[^\/]+\//) ? substr(path, 1, RLENGTH - 1) : path
    }
    BEGIN {
        count = split("input engine/base engine/tensor engine/math engine/ops engine/tape engine/nn engine/io engine/train engine/mpi engine/nccl " \
                      "engine/check tokenizer data models/masks models/batch models/latent models/nets models/density " \
                      "models/tasks models/writing models/scoring models/runs tools library tests docs", list, " ")
        for (i = 1; i <= count; i++) for (j = 1; j <= i; j++) may[list[i], list[j]] = 1
        for (i = 1; i <= count; i++) known[list[i]]
        for (j = 2; j <= 11; j++) delete may["tokenizer", list[j]]                    # no engine at all
        for (j = 4; j <= 11; j++) if (j != 8) delete may["data", list[j]]             # base, tensor and io only
    }
    {
        sub(/^\.\//, "", $2)
        if (index($2, "..")) reason = "paths are written from the root"
        else if (!(folder($2) in known) && $2 !~ /^(engine|models)\//) next                      # somebody else\047s header
        else if (!((folder($1), folder($2)) in may)) reason = folder($1) " may not read " folder($2)
        else next
        print "layers: " $1 " includes " $2 ": " reason
        wrong = 1
    }
    END { exit wrong }' || wrong=1

# keep_out PATTERN REASON FILE ...: none of the files may hold the pattern.
keep_out() {
    local lines
    lines=$(grep -nE "$1" "${@:3}" /dev/null) || return 0
    sed "s|^|layers: |; s|\$|  <- $2|" <<<"$lines"
    wrong=1
}
cuda_free=$(grep -vE '^(engine/(ops/cuda/.*|ops/launch\.h|math/lanes\.h)|tests/emulator/(cuda\.h|.*\.cu)|tests/golden/curand/.*|tests/cuda/oracle/.*|tests/ptx/(runtime|cublas)\.cpp)$' <<<"$files")
keep_out '__CUDACC__|__CUDA_ARCH__|CUDA_EMULATED|#include *["<](cuda|cublas|curand|nccl|thrust|cub/|.*\.cuh)' \
    'CUDA belongs in engine/ops/cuda, engine/ops/launch.h and engine/math/lanes.h' $cuda_free
nvcc_reads=$(grep -E '^engine/((base|tensor|math|ops)/[^/]*\.h|ops/[^/]*\.cpp|ops/cuda/.*)$' <<<"$files")
keep_out '#include *["<](fmt|nlohmann|CLI|doctest)/' 'nvcc compiles this file and cannot read that library' $nvcc_reads
keep_out 'json::(parse|accept|sax_parse)\(' 'input/json.cpp parses JSON, within bounds; parse_input and parse_bounded call it' \
    $(grep -vE '^(tests/|input/json\.cpp$)' <<<"$files")

exit $wrong

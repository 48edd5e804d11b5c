#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gpu_pack.sh [FOLDER]: builds everything that a bare machine with an H100 or H200 needs into FOLDER (default:
# build/gpu-pack): programs for x86-64 with AVX2, the CUDA library for sm_90, the commit, and headers for
# `make DEPS=FOLDER/headers`. FOLDER must be two levels below the root of the tree and is copied together with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
pack=${1:-build/gpu-pack}
builds=build/for-gpu-pack most=$((55 * 1024 * 1024))
files=(tests bench train generate evaluate {fake,partial,stale,foreign}_cuda.so)
fail() { echo "error: gpu_pack.sh: $*" >&2; exit 1; }

[[ $pack =~ ^[^/.]+/[^/.]+$ ]] || fail "'$pack' is no folder two below the root of the tree; name one as build/gpu-pack"
rm -rf "$pack"
mkdir -p "$pack/headers"

# header_folder HEADER: prints the folder in which the compiler finds HEADER
header_folder() {
    echo "#include <$1>" | ${CXX:-g++} -std=c++17 ${DEPS:+-isystem "$DEPS"} -x c++ -M - 2>/dev/null |
        tr ' ' '\n' | grep -m 1 "/$1\$" | xargs -r dirname
}
for header in fmt/format.h nlohmann/json.hpp CLI/CLI.hpp doctest/doctest.h; do
    folder=$(header_folder $header) || true
    [ -n "$folder" ] || fail "the compiler finds no $header; run make deps"
    cp -rL "$folder" "$pack/headers"
done

targets=("${files[@]/#/$builds/release/}" "$builds/cuda/libmasquerade_cuda.so" "$builds/release/curand.so")
make BUILDS=$builds CONFIG=release MARCH=x86-64-v3 CUDA_ARCHS=90 DEPS="$PWD/$pack/headers" TEST_LIBS= \
    CPPFLAGS=-DWITHOUT_UTF8PROC "${targets[@]}"
cp "${targets[@]}" "$pack"
(cd "$pack" && strip libmasquerade_cuda.so curand.so "${files[@]}")

# The programs may need only the C and C++ runtime libraries, because the target machine may have no other libraries.
foreign=$(readelf -d "$pack"/*.so "$pack"/{tests,bench,train,generate,evaluate} |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | grep -vE '^(lib(c|m|dl|stdc\+\+|gcc_s)\.so\.|ld-linux)' || true)
[ -z "$foreign" ] || fail "these libraries may be missing where the pack goes: $foreign; link without them"

commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=unknown
if [ -n "$(git status --porcelain -uno 2>/dev/null)" ]; then commit+=+; fi
echo "$commit" >"$pack/commit"

bytes=$(du -sb "$pack" | cut -f 1)
echo "gpu_pack.sh: $pack, commit $commit, $((bytes / 1024 / 1024)) MiB"
[ "$bytes" -lt $most ] || fail "$pack has $bytes bytes, more than the 55 MiB that travel; leave a program out"

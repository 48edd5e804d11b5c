#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Writes build/config.mk to standard output: what this machine has, found by compiling small programs.
#   MISSING, MISSING_TESTS   Debian packages that the build, and the tests alone, cannot do without
#   WANTED, TEST_LIBS        packages that only `make deps` asks for, and what the tests then link
#   WIDE_VECTORS             the flag that lets g++ use vectors of 512 bits where the machine has them
#   NOTES                    one line, in quotes, for each optional thing that is not here
# Called with CXX and NVCC in the environment.
set -u

compiles() {  # compiles SOURCE [FLAG ...]
    printf '%b\n' "$1" | ${CXX:-g++} -std=c++17 -x c++ - "${@:2}" -o /dev/null 2>/dev/null
}
has_header() { compiles "#include <$1>" -fsyntax-only; }

if ! compiles 'int main() {}'; then
    echo "the C++ compiler '${CXX:-g++}' does not compile an empty C++17 program; install one (Debian: g++)" >&2
    exit 1
fi

missing="" missing_tests="" wanted="" test_libs="" notes=""
has_header fmt/format.h || missing+=" libfmt-dev"
has_header nlohmann/json.hpp || missing+=" nlohmann-json3-dev"
has_header CLI/CLI.hpp || missing+=" libcli11-dev"
has_header doctest/doctest.h || missing_tests+=" doctest-dev"
if has_header utf8proc.h; then test_libs="-lutf8proc"; else wanted+=" libutf8proc-dev"; fi

wide_vectors=-mprefer-vector-width=512
compiles 'int main() {}' $wide_vectors || wide_vectors=""

command -v gdb >/dev/null || notes+=" 'gdb is not here (Debian: gdb): nothing to step through a backward pass with'"
nvcc_works=0
if ! command -v "${NVCC:-nvcc}" >/dev/null; then
    notes+=" 'nvcc is not here (the CUDA Toolkit): make cuda-check has nothing to compile with'"
elif ! printf '__global__ void kernel() {}\n' | "$NVCC" -x cu -c - -o /dev/null 2>/dev/null; then
    notes+=" '$NVCC does not compile an empty kernel: make cuda-check has nothing to compile with'"
else
    nvcc_works=1
fi

cat <<END
MISSING :=$missing
MISSING_TESTS :=$missing_tests
WANTED :=$wanted
TEST_LIBS := $test_libs
WIDE_VECTORS := $wide_vectors
NVCC_WORKS := $nvcc_works
NOTES :=$notes
END

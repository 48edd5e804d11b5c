#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# detect.sh: writes the contents of build/config.mk to standard output. It compiles small programs to find out what this
# machine has.
#   MISSING                  missing Debian packages that the build needs
#   MISSING_TESTS            missing Debian packages that only the tests need
#   WANTED                   missing optional packages, which only `make deps` installs
#   TEST_LIBS                optional libraries that the tests link
#   DEPS_FLAGS, FMT_LIB      flags for the headers in DEPS, and the library to link if fmt is not among them
#   WARNINGS                 warnings that differ between compilers
#   WIDE_VECTORS             the flag that lets g++ use vectors of 512 bits if the target has them
#   NVCC_WORKS               1 if nvcc can build a shared library
#   GPU_ARCHS                architectures of the GPUs of this machine
#   ALL_ARCHS                architectures of a CUDA library for other machines
#   MPI_WORKS                1 if mpicxx can build a shared library
#   NOTES                    a quoted line for each optional thing that is missing
# The small programs are compiled and never run, so CXX may be a cross compiler. A cross compiler finds the headers of this
# machine, but not its libraries: fmt is then used as headers alone.
# The environment variables CXX, NVCC and DEPS are read. DEPS is empty, or a folder with fmt/, nlohmann/, CLI/,
# doctest/.
set -u

compiles() {  # compiles SOURCE [FLAG ...]
    printf '%b\n' "$1" | ${CXX:-g++} -std=c++17 -x c++ - "${@:2}" -o /dev/null 2>/dev/null
}
has_header() { compiles "#include <$1>" -fsyntax-only $deps_flags; }

deps_flags="" fmt_lib=-lfmt
if [ -n "${DEPS:-}" ]; then
    [ -d "$DEPS" ] || { echo "DEPS=$DEPS is no folder; expected one with fmt/, nlohmann/, CLI/, doctest/" >&2; exit 1; }
    deps_flags="-isystem $DEPS"
    if [ -d "$DEPS/fmt" ]; then deps_flags+=" -DFMT_HEADER_ONLY" fmt_lib=""; fi
fi

if ! compiles 'int main() {}'; then
    echo "the C++ compiler '${CXX:-g++}' does not compile an empty C++17 program; install one (Debian: g++)" >&2
    exit 1
fi

missing="" missing_tests="" wanted="" test_libs="" notes=""
has_header fmt/format.h || missing+=" libfmt-dev"
has_header nlohmann/json.hpp || missing+=" nlohmann-json3-dev"
has_header CLI/CLI.hpp || missing+=" libcli11-dev"
has_header doctest/doctest.h || missing_tests+=" doctest-dev"
command -v pkg-config > /dev/null || wanted+=" pkgconf"  # tests/examples.sh
command -v python3 > /dev/null || wanted+=" python3"     # tests/*.sh
/usr/bin/python3 -c 'import numpy' 2> /dev/null || wanted+=" python3-numpy"  # tests/library.sh
command -v gnuplot > /dev/null || wanted+=" gnuplot-nox"  # ./inspect plot, used by pages and labs
command -v clang-format > /dev/null || wanted+=" clang-format"  # make format
command -v dot > /dev/null || wanted+=" graphviz"         # ./inspect program --graph
links() { compiles 'int main() {}' "$1"; }
if [ -n "$fmt_lib" ] && has_header fmt/format.h && ! links $fmt_lib; then deps_flags+=" -DFMT_HEADER_ONLY" fmt_lib=""; fi
if ! has_header utf8proc.h; then
    wanted+=" libutf8proc-dev"
elif links -lutf8proc; then
    test_libs="-lutf8proc"
else
    deps_flags+=" -DWITHOUT_UTF8PROC"
fi

wide_vectors=-mprefer-vector-width=512
compiles 'int main() {}' $wide_vectors || wide_vectors=""

# g++ finds shadowed names that mislead; clang++ also warns of shadowed names of a namespace. g++ 12 sees an overflow in
# fmt 9's own parser that is not there.
# clang++ does not know gnu::noclone, and cannot unroll all loops. clang++ 19 warns of a deprecated function inside the
# standard library of g++ 12.
warnings="-Wshadow -Wno-c++20-extensions -Wno-stringop-overflow"
compiles 'int main() {}' -Werror $warnings ||
    warnings="-Wno-c++20-extensions -Wno-unknown-attributes -Wno-pass-failed -Wno-deprecated-declarations"

command -v gdb >/dev/null || notes+=" 'gdb is not here (Debian: gdb): nothing to step through a backward pass with'"

# A CUDA library for other machines has code for the A100, the H100 and the newest architecture that this nvcc knows.
nvcc_works=0 archs="" here=""
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! command -v "${NVCC:-nvcc}" >/dev/null; then
    notes+=" 'nvcc is not here (the CUDA Toolkit): the programs use the CPU only'"
elif ! printf '__global__ void kernel() {}\n' |
    "$NVCC" -x cu -shared -Xcompiler -fPIC - -o "$folder/empty.so" 2>/dev/null; then
    notes+=" '$NVCC does not build an empty kernel: the programs use the CPU only'"
else
    nvcc_works=1
    known=$("$NVCC" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n)
    for arch in 80 90 $(tail -n 1 <<<"$known"); do
        case " $archs " in *" $arch "*) ;; *) grep -qx "$arch" <<<"$known" && archs+=" $arch" ;; esac
    done
    for arch in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -nu); do
        grep -qx "$arch" <<<"$known" && here+=" $arch"
    done
    [ -n "$here" ] || notes+=" 'no GPU answers: make cuda builds the CUDA half for$(sed 's/[0-9]\+/sm_&/g' <<<"$archs")'"
fi

mpi_works=0
printf '#include <mpi.h>\nint start() { return MPI_Init(nullptr, nullptr); }\n' |
    OMPI_CXX="${CXX:-g++}" mpicxx -x c++ -shared -fPIC - -o "$folder/mpi.so" 2>/dev/null && mpi_works=1

cat <<END
MISSING :=$missing
MISSING_TESTS :=$missing_tests
WANTED :=$wanted
TEST_LIBS := $test_libs
DEPS_FLAGS := $deps_flags
FMT_LIB := $fmt_lib
WARNINGS := $warnings
WIDE_VECTORS := $wide_vectors
NVCC_WORKS := $nvcc_works
GPU_ARCHS :=$here
ALL_ARCHS :=$archs
MPI_WORKS := $mpi_works
NOTES :=$notes
END

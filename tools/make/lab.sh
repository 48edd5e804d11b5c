#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/lab.sh NN CHECK FILE PROGRAM: compiles FILE, which a student wrote for lab NN, together with CHECK (a .cpp
# or .o file) to PROGRAM. The compiler's flag is -O0. If docs/labs/NN/flags exists, the flags in this file replace -O0.
# If the file contains the word "library", the program is linked with the engine, which `make` must have built. The
# student's file is compiled for AddressSanitizer, which names the line of an access past the end of an array, and with
# the assertions of the standard library, which report an index past the end of a vector. Not if the compiler has no
# AddressSanitizer, if LAB_ASAN is "no", or if the flags ask for speed (-O3).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
flags=-O0
[ -f "$root/docs/labs/$1/flags" ] && flags=$(cat "$root/docs/labs/$1/flags")
links=()
case " $flags " in *' library '*)
    library=${LAB_LIBRARY:-$root/build/release/libmasquerade.a}
    [ -f "$library" ] || { echo "error: lab $1 calls the engine, and there is no $library: make it" >&2; exit 1; }
    # The engine needs the library of fmt, unless tools/make/detect.sh has found that fmt is used as headers alone.
    fmt=$(sed -n 's/^FMT_LIB := //p' "$(dirname "$library")/../config.mk" 2> /dev/null || echo -lfmt)
    links=("$library" $fmt -ldl) ;;
esac
read -ra flags <<< "${flags//library/}"
watched=()
if [ "${LAB_ASAN:-}" != no ] && [[ " ${flags[*]} " != *' -O3 '* ]] &&
    { [[ $("${CXX:-g++}" -print-file-name=libasan.so) = /* ]] || "${CXX:-g++}" -fsanitize=address -x c++ - -o /dev/null <<< 'int main() {}' 2> /dev/null; }; then
    watched=(-g -fsanitize=address -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
fi
exec "${CXX:-g++}" -std=c++17 -I "$root" -pthread "${flags[@]}" "${watched[@]}" -x c++ "$3" $([[ $2 = *.o ]] && echo -x none) "$2" -x none "${links[@]}" -o "$4"

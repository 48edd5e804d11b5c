#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the Makefile in a copy of this tree that has no history, and whose path has a space: `make clean` beside other
# goals and in other folders, packages that come later, names of folders, and what needs git. A script plays the
# compiler.
. "$(dirname "$0")/command_line.sh"
unset MAKEFLAGS MAKELEVEL
copy="$folder/a tree"
mkdir "$copy"
cp -r Makefile .clang-format data docs engine input library models python tests tokenizer tools "$copy"
cd "$copy"
small=build/release/obj/engine/base/random.o
# A compiler that writes empty files, and finds a header once there is a file of the name headers.
cat > "$folder/c++" << 'END'
#!/bin/sh
case "$*" in *-fsyntax-only*) [ -e "${0%/*}/headers" ] || exit 1 ;; esac
while [ $# -gt 1 ]; do [ "$1" != -o ] || : > "$2"; shift; done
END
chmod +x "$folder/c++"
touch "$folder/headers"
make() { command make -s NVCC=none CXX="$folder/c++" "$@"; }

# ---- clean ----
make -j4 $small > said 2>&1 || cat said
is 'clean and another goal: status' 0 "$(make -j4 clean $small > said 2>&1; echo $?)"
is 'clean and another goal: the other one is made' yes "$([ -e $small ] && echo yes || cat said)"
mkdir -p elsewhere/release unknown/release
touch elsewhere/{mine,compilers} elsewhere/release/train unknown/release/train
ln -s elsewhere/release/train train
make clean BUILDS=elsewhere
make clean BUILDS=unknown
is 'clean in a folder with other things' 'mine' "$(ls elsewhere)"
is 'clean in a folder that make has not made' 'unknown/release/train' "$(find unknown -type f)"
is 'clean elsewhere: the usual folder stays' yes "$([ -e $small ] && echo yes)"
is 'clean: no link leads nowhere' '' "$(find . -maxdepth 1 -xtype l)"
make clean
is 'clean: nothing is left' no "$([ -e build ] && echo yes || echo no)"

# ---- what is missing is looked for again, also without dpkg ----
rm "$folder/headers"
is 'no headers' 'missing: libfmt-dev' "$(make needs 2>&1 | grep -o 'missing: libfmt-dev')"
touch "$folder/headers"
is 'headers that came later' '' "$(make needs 2>&1)"
mkdir "$folder/bin"
make needs
mpi=$(sed -n 's/^MPI_WORKS := //p' build/config.mk)
printf '#!/bin/sh\nexit %d\n' "$mpi" > "$folder/bin/mpicxx"
chmod +x "$folder/bin/mpicxx"
PATH=$folder/bin:$PATH make needs
is 'another mpicxx' $((1 - mpi)) "$(sed -n 's/^MPI_WORKS := //p' build/config.mk)"

# ---- names ----
is 'deb: the folder that is deleted' 'rm -rf build/release/deb' "$(make -n deb 2> /dev/null | grep '^rm -rf .*deb$')"
make -n install DESTDIR='a root/' PREFIX=out > said 2>&1
is 'install: a PREFIX that is relative' 1 "$(grep -cF "s|@PREFIX@|$PWD/out|" said)"
is 'install: a DESTDIR with a space' 1 "$(grep -cxF "install -d \"a root/$PWD/out/lib/pkgconfig\"" said)"

# ---- without git, and inside of another repository ----
if command -v python3 > /dev/null; then
    is 'no git: the planted errors' '0 note' "$(said=$(tests/mutants/check.sh 2> /dev/null); echo "$? ${said%%:*}")"
    is 'no git: the planted errors, which are needed' 1 "$(tests/mutants/check.sh needed > said 2>&1; echo $?)"
fi
! command -v clang-format-14 > /dev/null || is 'no git: the format' 1 "$(tools/make/format.sh check > said 2>&1; echo $?)"
tests/book/lists.sh "$folder" > said 2>&1
is 'no git: the lists for the pages' '0 ' "$? $(cat said)"
(cd "$folder" && git init -q . && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m one) > said 2>&1 || cat said
make needs
is 'the commit of another repository' '' "$(cat build/release/commit)"
cd ..
finish make

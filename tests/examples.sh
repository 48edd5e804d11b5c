#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the programs of docs/examples in a folder of their own against an installed library, those in C++ by pkg-config,
# and runs them.
. "$(dirname "$0")/command_line.sh"
command -v pkg-config > /dev/null || { echo 'examples: pkg-config is not here (Debian: pkgconf): run make deps' >&2; exit 1; }
root=$PWD
make -s install DESTDIR="$folder/a root" PREFIX=/usr/local > "$folder/log" 2>&1
is 'make install: status' 0 $?
ln -s 'a root/usr' "$folder/usr"  # pkg-config and the compiler get names without a space
cp docs/examples/*.cpp "$folder"
cd "$folder"
export PKG_CONFIG_PATH=$folder/usr/local/lib/pkgconfig
flags() { pkg-config --define-variable=prefix="$folder/usr/local" "$1" masquerade; }
is 'nothing of the sources is read' 0 "$(flags --cflags | grep -c -- '-I\.')"
is 'no instruction set is forced on programs' 0 "$(flags --cflags | grep -c -- '-march')"
is 'the instruction set of the library is known' native "$(flags --variable=march)"
for source in *.cpp; do
    name=${source%.cpp}
    g++ -O2 $(flags --cflags) "$source" -o "$name" $(flags --libs) 2> error
    is "$name is built" '' "$(head -n 3 error)"
    "./$name" > report
    is "$name: status" 0 $?
    case $name in
        my_op) is "$name" 1 "$(grep -c ' checks, 0 wrong$' report)" ;;
        my_mask) is "$name is drawn" 9 "$(grep -c '^[0-8]  *██' report)" ;;
    esac
done
cp "$root/docs/examples/reconstruct.c" .
${CC:-cc} -std=c99 -Wall -Wextra $(flags --cflags-only-I) -I"$folder/usr/local/include" reconstruct.c -o reconstruct \
    -L"$folder/usr/local/lib" -lmasquerade -Wl,-rpath,"$folder/usr/local/lib" 2> error
is 'reconstruct is built' '' "$(head -n 3 error)"
is 'reconstruct: a line of scores and a reconstruction for each sentence' '2 4' \
    "$(./reconstruct my_run 'where is it?' 'what is that?' | tee report | grep -c ' nats in [0-9]* tokens: w') $(wc -l < report)"
make -s -C "$root" install-programs DESTDIR="$folder/a root" PREFIX=/usr/local > log 2>&1
is 'make install-programs: status' 0 $?
masquerade=$folder/usr/local/bin/masquerade
printf 'the red cup\n' > words.txt
is 'a command of masquerade' 'the r ##ed c ##u ##p' "$("$masquerade" tokenize --vocab "$root/tests/golden/tokenizer/vocab.txt" < words.txt)"
is 'the commands of masquerade' 1 "$("$masquerade" --help | grep -c ' evaluate generate inspect tokenize train$')"
refuses 'no command of masquerade' 2 'there is no command fly; there are corpus' "$masquerade" fly
refuses 'a path is no command' 2 'there is no command ../bin/masquerade' "$masquerade" ../bin/masquerade
finish examples

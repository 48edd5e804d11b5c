#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the programs of docs/examples in a folder of their own, by pkg-config against an installed library, and runs
# them.
. "$(dirname "$0")/command_line.sh"
command -v pkg-config > /dev/null || { echo 'examples: pkg-config is not here (Debian: pkgconf): run make deps' >&2; exit 1; }
make -s install DESTDIR="$folder" PREFIX=/usr/local > "$folder/log" 2>&1
is 'make install: status' 0 $?
cp docs/examples/*.cpp "$folder"
cd "$folder"
export PKG_CONFIG_PATH=$folder/usr/local/lib/pkgconfig
flags() { pkg-config --define-variable=prefix="$folder/usr/local" "$1" masquerade; }
is 'nothing of the sources is read' 0 "$(flags --cflags | grep -c -- '-I\.')"
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
finish examples

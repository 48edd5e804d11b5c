#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# transcripts.sh PAGE ...: types every walk through gdb of these pages into gdb, and compares what gdb prints with what
# the page shows (replay.py says how). Needs gdb and the programs of `make debug` that the walks name. If WALKS is set,
# the programs in this folder (of `make walks`) are used instead. Prints nothing if all is well.
set -euo pipefail
root=${root:-$PWD}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v folder="$work" -f "$root/tests/book/walks.awk" "$@" | tee "$work/orphans"
# The folder in which the walks run. It has the sources but no corpus, so that the programs read the same sentences on
# every machine.
mkdir "$work/here"
for entry in "$root"/*; do
    case $(basename "$entry") in corpus | runs) ;; *) ln -s "$entry" "$work/here" ;; esac
done
if [ -n "${WALKS:-}" ]; then
    rm "$work/here/build"
    mkdir "$work/here/build"
    ln -s "$root"/build/* "$work/here/build"
    ln -sfn "$root/$WALKS" "$work/here/build/debug"
fi
cd "$work/here"
replay() {
    local lines=$1 command
    command=$(cat "${lines%.lines}.command")
    BOOK_TYPE=$lines bash -c "${command/gdb -x tools\/gdb\/gdbinit/gdb -batch -x tools/gdb/gdbinit -x $root/tests/book/replay.py}" \
        > "${lines%.lines}.printed" 2> "${lines%.lines}.error" < /dev/null || true
    BOOK_COMPARE=$lines BOOK_PRINTED=${lines%.lines}.printed gdb -batch -x "$root/tests/book/replay.py" > "${lines%.lines}.compared" || true
    grep -v '^book: command compared$' "${lines%.lines}.compared" && return
    grep -q '^book: command compared$' "${lines%.lines}.compared" ||
        echo "$(head -n 1 "$lines" | cut -f 1,2 | tr '\t' ':'): tests/book/replay.py: ends with an error"
}
export -f replay
export root
ls "$work"/*.lines | sort -V | xargs -P "$(nproc)" -I {} bash -c 'replay {} > {}.found'
cat $(ls "$work"/*.found | sort -V) > "$work/found"
cat "$work/found"
[ ! -s "$work/found" ] && [ ! -s "$work/orphans" ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# newcomer.sh: from a clone of HEAD to names and numbers in a backward, as the README says: the minutes of each command, and
# what gdb prints. Then every walk of docs/debugging.md, by gdb and by lldb. Takes minutes; ends with status 1 where the first part takes ten.
set -euo pipefail
root=$PWD
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
git diff --quiet HEAD || echo 'book: note: uncommitted changes are not in the clone'
git clone -q "$root" "$room/masquerade"
cd "$room/masquerade"
export root=$PWD

# The commands of the README's block that has gdb, and what is typed there.
awk '/^```/ { if (inside && text ~ /\ngdb /) { printf "%s", text; exit } inside = !inside; text = "\n"; next } inside { text = text $0 "\n" }' \
    README.md > "$room/block"
grep -q '^make debug$' "$room/block" && grep -q '^(gdb) ' "$room/block" || { echo 'book: the README has no walk through gdb'; exit 1; }

minutes() { awk -v s="$SECONDS" 'BEGIN { printf "%.1f min  ", s / 60 }'; }
SECONDS=0
make deps > "$room/deps"
echo "$(minutes)make deps: $(tail -n 1 "$room/deps")"
make debug > "$room/debug"
echo "$(minutes)make debug: $(tail -n 1 "$room/debug")"
echo "          of the processors until here: $(times | tail -n 1) (load of the machine: $(cut -d ' ' -f 1 /proc/loadavg))"
sed -n 's/^(gdb) //p' "$room/block" > "$room/typed"
command=$(grep '^gdb ' "$room/block")
bash -c "${command/gdb -x tools\/gdb\/gdbinit/gdb -batch -x tools/gdb/gdbinit -x $room/typed}" < /dev/null 2> /dev/null | tee "$room/printed"
grep -q 'decoder\.layer\..* f32' "$room/printed" || { echo 'book: no names and numbers'; exit 1; }
first=$SECONDS
echo "$(minutes)names and numbers in a backward"
tests/book/transcripts.sh README.md docs/debugging.md
echo "$(minutes)every walk of docs/debugging.md prints what the page shows"
# lldb, where it is: the path, and the first six digits of each number that the page shows.
if command -v lldb > /dev/null; then
    sed -n 's/^(lldb) //p' docs/debugging.md > "$room/typed"
    lldb -b -s "$room/typed" -- build/debug/inspect --threads 1 program > "$room/printed" 2> /dev/null
    for shown in $(sed -n '/^lldb build/,/^```/p' docs/debugging.md | grep -oE '= -?0\.0*[1-9][0-9]{5}|"decoder[^"]*"' | sed 's/^= //'); do
        grep -qF -- "$shown" "$room/printed" || { echo "book: lldb does not print $shown"; exit 1; }
    done
    echo "$(minutes)the walk through lldb prints what the page shows"
else
    echo 'book: note: no lldb here; its walk is left out'
fi
[ "$first" -lt 600 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# newcomer.sh: from a clone of HEAD to names and numbers in a backward, as the README says: the minutes of each command, and
# what gdb prints. Then every walk of docs/debugging.md. Takes minutes; ends with status 1 where the first part takes ten.
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
[ "$first" -lt 600 ]

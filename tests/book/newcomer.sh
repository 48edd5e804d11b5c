#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# newcomer.sh: follows the README from a clone of HEAD to names and numbers in a backward. Prints the minutes after each
# command, and what gdb prints. Then tries every walk of docs/debugging.md, by gdb and by lldb, and every configuration
# of an editor's launch file. Takes minutes. Ends with status 1 if the first part takes ten minutes. If the machine is
# busy, the time that this part would take with all processors counts instead.
set -euo pipefail
root=$PWD
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
git diff --quiet HEAD || echo 'book: note: uncommitted changes are not in the clone'
git clone -q "$root" "$room/masquerade"
cd "$room/masquerade"
export root=$PWD

# The README's block of commands that contains gdb, with what is typed into gdb.
awk '/^```/ { if (inside && text ~ /\ngdb /) { printf "%s", text; exit } inside = !inside; text = "\n"; next } inside { text = text $0 "\n" }' \
    README.md > "$room/block"
grep -q '^make debug$' "$room/block" && grep -q '^(gdb) ' "$room/block" || { echo 'book: the README has no walk through gdb'; exit 1; }

minutes() { awk -v s="$SECONDS" 'BEGIN { printf "%.1f min  ", s / 60 }'; }
SECONDS=0
make deps > "$room/deps"
echo "$(minutes)make deps: $(tail -n 1 "$room/deps")"
make debug > "$room/debug"
echo "$(minutes)make debug: $(tail -n 1 "$room/debug")"
times > "$room/times"  # not in a pipe: its shell has no children whose time counts
alone=$(tail -n 1 "$room/times" | tr ms '  ' | awk -v n="$(nproc)" '{ print int((60 * ($1 + $3) + $2 + $4) / n) }')
busy=$(awk -v n="$(nproc)" '{ print ($1 > n + 1) }' /proc/loadavg)
echo "          of the processors until here: $(tail -n 1 "$room/times"), shared by $(nproc): $((alone / 60)).$((alone % 60 / 6)) min" \
    "(load of the machine: $(cut -d ' ' -f 1 /proc/loadavg))"
sed -n 's/^(gdb) //p' "$room/block" > "$room/typed"
command=$(grep '^gdb ' "$room/block")
bash -c "${command/gdb -x tools\/gdb\/gdbinit/gdb -batch -x tools/gdb/gdbinit -x $room/typed}" < /dev/null 2> /dev/null | tee "$room/printed"
grep -q 'decoder\.layer\..* f32' "$room/printed" || { echo 'book: no names and numbers'; exit 1; }
first=$SECONDS
echo "$(minutes)names and numbers in a backward"
tests/book/transcripts.sh README.md docs/debugging.md docs/finding-errors.md
echo "$(minutes)every walk of docs/debugging.md and docs/finding-errors.md prints what the page shows"
# If lldb is installed, it must print the path, and the first six digits of each number that the page shows.
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
python3 tests/book/launch.py
echo "$(minutes)every configuration of .vscode/launch.json stops in a backward"
sed '0,/gdb\/gdbinit/s//gdb\/no_such_file/' .vscode/launch.json > "$room/planted.json"
python3 tests/book/launch.py "$room/planted.json" > "$room/printed" || true
[ "$(grep -c 'gdb refuses .*no_such_file' "$room/printed")" = 1 ] || { echo 'book: a wrong path in launch.json is not found'; exit 1; }
[ "$([ "$busy" = 1 ] && echo "$alone" || echo "$first")" -lt 600 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that the pages and the code agree. docs/README.md says what a page may quote, and how a page marks other text.
#     tests/book.sh               checks quotations, links, formulas, slides and derivations; needs no build, and takes
#                                 two seconds. If ./inspect is built, also compares the examples by hand with the engine
#     tests/book.sh --slow        also builds programs for gdb, types the commands and gdb walks of the pages,
#                                 follows an editor's launch file, and compiles the op of add-an-op.md
#     tests/book.sh --self-test   plants faults, which the checks must report with page and line
#     tests/book.sh --newcomer    follows the README from a clone to names and numbers in a backward, and takes the time
# A fault is one line: PAGE:LINE: `what is quoted`: what was looked for.
set -euo pipefail
cd "$(dirname "$0")/.."
pages="README.md $(ls docs/*.md docs/*/*.md | xargs)"
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

# quotations PAGE ...: checks the quotations and links of pages in the current folder
quotations() {
    awk -v lists="$lists" -v root="$root" -v whole="${whole:-}" -f "$root/tests/book/names.awk" -f "$root/tests/book/commands.awk" "$@"
    awk -v lists="$lists" -f "$root/tests/book/links.awk" "$@"
}
# faults_of CHECKER COMMAND...: prints the faults that a command prints, or one fault if it fails without any
faults_of() {
    "${@:2}" > "$lists/said" || [ -s "$lists/said" ] || echo "$1: ends with an error" > "$lists/said"
    cat "$lists/said"
}
# derivations: checks the derivations of docs/ops with numbers, and prints the faults
derivations() {
    if ! command -v python3 > /dev/null; then
        echo 'book: python3 is not here: the derivations are not checked with numbers' >&2
        return
    fi
    python3 -B tests/book/derivations.py > "$lists/derivations" ||
        grep -E '^(docs|engine|tests)/' "$lists/derivations" || echo 'tests/book/derivations.py: it does not come to its end'
}
# formulas PAGE ...: prints what GitHub or KaTeX could not read in a formula
formulas() {
    if command -v python3 > /dev/null; then faults_of tools/make/tex.py python3 -B "$root/tools/make/tex.py" "$@"; fi
}
# slides DECK ...: prints what a slide has too much of, or lacks
slides() {
    if command -v python3 > /dev/null; then faults_of tools/make/slides.py python3 -B "$root/tools/make/slides.py" check "$@"; fi
}
# examples PAGE ...: runs the examples of the pages (./inspect op ...), if the program is built, and prints the faults
examples() {
    if ! command -v python3 > /dev/null || [ ! -x inspect ]; then
        echo 'book: no ./inspect (make) or no python3 here: the examples by hand are not compared with the engine' >&2
        return
    fi
    python3 -B tests/book/examples.py "$@" > "$lists/examples" || true
    grep -v '^examples: ' "$lists/examples" || [ -s "$lists/examples" ] || echo 'tests/book/examples.py: it does not come to its end'
}
# said_by SCRIPT: if the script fails, adds the lines that it has printed to the faults, or one line if it has printed
# nothing
said_by() {
    python3 "$1" > "$lists/said" || grep -v '^launch.json: ' "$lists/said" >> "$lists/faults" || echo "$1: ends with an error" >> "$lists/faults"
}
export root=$PWD
tests/book/lists.sh "$lists"

case ${1:-} in
    --self-test) . tests/book/planted.sh ;;
    --newcomer) exec tests/book/newcomer.sh ;;
    '' | --slow)
        { whole=1 quotations $pages; derivations; formulas $pages; slides docs/slides/*.md; examples $pages; } > "$lists/faults"
        if [ "${1:-}" = --slow ]; then
            if command -v gdb > /dev/null; then
                make walks >&2
                export WALKS=build/walks
                faults_of tests/book/transcripts.sh tests/book/transcripts.sh $pages >> "$lists/faults"
                # gdb ends with 0 after an exception of a script.
                PROGRAM=$WALKS/inspect gdb -q -batch -x tests/gdb_masks.py > "$lists/said" 2>&1 &&
                    grep -q '^gdb masks: ' "$lists/said" ||
                    { echo 'tools/gdb/mask.py: draws other masks than the program:'; tail -n 5 "$lists/said"; } >> "$lists/faults"
                said_by tests/book/launch.py
            else
                echo 'book: gdb is not here (Debian: gdb): its walks are not checked' >&2
            fi
            said_by tests/book/own_op.py
            faults_of tests/book/typed.sh tests/book/typed.sh $pages >> "$lists/faults"
        fi
        cat "$lists/faults"
        faults=$(grep -vc '^ ' "$lists/faults" || true)
        grep -hs '^derivations: ' "$lists/derivations" || true
        grep -hs '^examples: ' "$lists/examples" || true
        echo "book: $(wc -w <<< "$pages") pages, $faults faults"
        [ "$faults" = 0 ] ;;
    *) sed -n '3,10s/^# //p' "$0" >&2; exit 2 ;;
esac

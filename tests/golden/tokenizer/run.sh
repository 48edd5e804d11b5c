#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs golden cases of the tokenizer through the tests that `make test` built:
#     tests/golden/tokenizer/run.sh                        the cases of this folder
#     tests/golden/tokenizer/run.sh FOLDER VOCABULARIES    every NAME.jsonl of a folder; a settings.json there, or
#                                     else here, gives the vocabulary and the options of each file
#     tests/golden/tokenizer/run.sh --long                 no cases: prints the seconds that ./tokenize takes for one
#                                     line of 1, 2, 4 and 8 MB, which should double each time
# The last line counts the cases. The status is 1 if a case differs. BUILD is the build folder (build/release).
set -euo pipefail
cases=$(realpath "${1:-$(dirname "$0")}" 2>/dev/null || true) vocabularies=$(realpath "${2:-$(dirname "$0")}")
cd "$(dirname "$0")/../../.."
build=${BUILD:-build/release} vocabulary=tests/golden/tokenizer/vocab.txt

# long NAME UNIT [OPTION ...]: measures lines that consist of the repeated UNIT
long() {
    local megabytes seconds
    printf '%-34s' "$1"
    for megabytes in 1 2 4 8; do
        { yes "$2" | tr -d '\n' || true; } 2>/dev/null | head -c "${megabytes}000000" > "$line"
        seconds=$({ TIMEFORMAT=%R; time ./tokenize --ids --threads 1 --vocab "$vocabulary" \
            "${@:3}" < "$line" > "$line.ids" 2> /dev/null; } 2>&1)
        printf '%9s' "$seconds"
    done
    printf '%10s ids\n' "$(wc -w < "$line.ids")"
}

if [ "${1:-}" = --long ]; then
    line=$(mktemp); trap 'rm -f "$line" "$line.ids"' EXIT
    printf '%-34s%9s%9s%9s%9s   of the longest\n' 'one line of, in seconds' '1 MB' '2 MB' '4 MB' '8 MB'
    unlimited=(--max-word 1000000000)
    long 'a word' a
    long 'a word, no limit' a "${unlimited[@]}"
    long 'a word with accents' $'\u00e9'
    long 'a word with accents, no limit' $'\u00e9' "${unlimited[@]}"
    long 'the same with offsets' $'\u00e9' "${unlimited[@]}" --offsets
    long 'a word with marks, no limit' $'e\u0301' "${unlimited[@]}"
    long 'nothing but marks' $'\u0301'
    long 'marks that stay, out of order' $'\u302e\u1715' "${unlimited[@]}"
    long 'capital sigmas' $'\u03a3'
    long 'capital sigmas, soft hyphens' $'\u0391\u03a3\u00ad'
    long 'Hangul, no limit' $'\ud55c' "${unlimited[@]}"
    long 'ideographs' $'\u4e2d'
    long 'punctuation' .
    long 'special tokens' '[SEP]' --recognise
    long 'letters, signs, accents by turns' $'a-\u00e9.'
    long 'spaces' ' '
    long 'characters that are dropped' $'\u200b'
    long 'bytes that are not UTF-8' $'\xff'
    exit
fi

[ -d "$cases" ] || { echo "run.sh: no such folder: $1" >&2; exit 2; }
[ -x "$build/tests" ] || { echo "run.sh: $build/tests is not there; please run: make test" >&2; exit 2; }
status=0
export GOLDEN=$cases VOCABULARIES=$vocabularies
out=$("$build/tests" --test-case='golden cases of other tokenizers*') || status=1
grep -vE '^[0-9]+ (passed|of [0-9]+ golden)' <<<"$out" || true
grep -E '^[0-9]+ of [0-9]+ golden' <<<"$out" || { echo 'no golden case ran'; status=1; }
exit $status

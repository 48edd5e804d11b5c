#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the help texts of all programs, commands and families of models, and the messages about wrong command lines.
. "$(dirname "$0")/command_line.sh"
root=$PWD build=$PWD/${BUILD:-build/release}
programs=$(basename -s .cpp tools/*.cpp)
cd "$folder"

# neat NAME COMMAND...: checks that the help text is printed without an error, fits 80 columns and has no words of CLI11
neat() {
    "${@:2}" > help 2> error
    is "$1: status" 0 $?
    is "$1: errors" '' "$(cat error)"
    is "$1: more than three lines" yes "$([ "$(wc -l < help)" -gt 3 ] && echo yes || echo no)"
    is "$1: lines of more than 80 columns" '' "$(awk 'length > 80' help)"
    is "$1: words of CLI11" '' "$(grep -E 'Option Group|Excludes:|Needs:|Positionals|Subcommand|OPTIONS|REQUIRED' help)"
    is "$1: ends of lines" '' "$(grep -n ' $' help)"
}
texts=0
for program in $programs; do
    for all in --help --help-all; do
        for part in '' $(commands_of "$build/$program"); do
            texts=$((texts + 1))
            neat "$program $part $all" "$build/$program" $part $all
        done
    done
done
is 'help texts' 'more than 30' "$([ $texts -gt 30 ] && echo more than 30 || echo $texts)"
"$build/train" --help > help
is 'train --help: at most 25 lines' yes "$([ "$(wc -l < help)" -le 25 ] && echo yes || wc -l < help)"
"$build/train" --help-all > all
for family in $(families_of "$build/inspect"); do
    is "train --help: $family" 1 "$(grep -c "^  $family " help)"
    neat "train $family" "$build/train" "$family" --help
    is "train $family: all settings are in --help-all" 0 "$(grep '^  ' help | grep -cvxFf all)"
    is "train $family: settings have a topic" '' "$(awk '/^[^ ]/ { above = $0 } /^  [a-z_0-9]+=/ && above !~ /^[A-Z].*:$/' help)"
    "$build/train" --help > help
done
neat 'train diffusion' "$build/train" diffusion --help
has() { is "$1" 1 "$(grep -cE -- "$2" help)"; }
has 'an objective is named as its setting' '^  objective=diffusion '
"$build/train" univae width=64 --help > help
has 'a setting, its value and its range' '^  width=64  +C, model width \(a whole number from 1 to 65536\)$'

# ---- the help on a run has only the options that its family supports ----
printf '%s\n' 'the red cup' 'the blue cup' 'a cup of tin' > lines.txt
tiny='width=16 heads=2 inner=32 layers=2 vocabulary=64 batch_tokens=100 --steps 1'
"$build/train" --device cpu lm $tiny --data lines.txt --dev lines.txt --out lm > said 2>&1 || cat said
for program in generate evaluate; do
    neat "$program lm" "$build/$program" lm --help
    is "$program lm: its options" '0 1' "$(grep -c '^Options of univae:' help) $(grep -cE '^Options of unilm( and seq2seq)?:' help)"
    neat "$program lm --help-all" "$build/$program" lm --help-all
    is "$program lm --help-all: all options" 1 "$(grep -c '^Options of univae:' help)"
done

# ---- a help text follows the width of the terminal: at most 100 columns ----
for columns in 60 90 200; do
    python3 "$root/tests/terminal.py" $columns '-,press 0' bash -c "sleep 0.3; $build/generate --help" | tr -d '\r' > help
    widest=$(awk '{ if (length > most) most = length } END { print most }' help)
    limit=$((columns > 100 ? 100 : columns))
    is "a terminal of $columns columns" yes "$([ $widest -le $limit ] && [ $widest -gt $((limit - 8)) ] && echo yes || echo $widest)"
done

# ---- one line says what was found and what was expected ----
ends='(./train --help lists the options)'
refuses 'an unknown option' 2 "unknown option --minuts; did you mean --minutes? $ends" "$build/train" --minuts 3
refuses 'an unknown option with its value' 2 'unknown option --minuts; did you mean --minutes?' "$build/train" --minuts=3
refuses 'an unknown option of a command' 2 'unknown option --suorce; did you mean --source?' "$build/inspect" mask bert --suorce 3
refuses 'an unknown command' 2 'unknown command masks; did you mean mask?' "$build/inspect" masks
refuses 'no command' 2 'expected a command, found none; there are mask, attention' "$build/inspect"
refuses 'a word too many' 2 'unexpected word b; expected an option' "$build/generate" a b
refuses 'no value' 2 '--minutes: a value is expected, but none follows' "$build/train" --minutes
refuses 'two values' 2 '--minutes is given more than once' "$build/train" --minutes 1 --minutes 2
refuses 'options that exclude each other' 2 '--swap and --codes cannot be combined: leave out one of them' \
    "$build/generate" run --codes --swap 1:2
refuses 'an option without another one' 2 '--each needs --resample: give both, or none of them' "$build/generate" run --each 3
refuses 'a number that is too small' 2 '--steps: a whole number from 1 to 1099511627776 is expected, found 0' "$build/train" --steps 0
refuses 'a number that is too large' 2 '--top-p: a number from 0 to 1 is expected, found 1.5' "$build/generate" run --top-p 1.5
refuses 'a word that is no choice' 2 '--device: expected one of auto, cpu, cuda, found gpu' "$build/train" --device gpu
refuses 'no run' 2 'expected RUN (run folder, or one of its checkpoints), found nothing' "$build/generate"
refuses 'a flag with a value' 2 '--json takes no value' "$build/evaluate" run --json=3
finish help

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tries every option of every program, and every setting of ./train, with values that they cannot have. The programs'
# own --help lists the options and settings. Each value must be refused in one line, at once. Takes half a minute.
. "$(dirname "$0")/command_line.sh"
build=$PWD/${BUILD:-build/release}
programs=$(basename -s .cpp tools/*.cpp)
cd "$folder"
numbers='N K M P S T X G L ETA ALPHA SIZE N,...'
names='MASK FILE DIR FOLDER RUN RUN... PATH NAME NAME,... NAME=CHOICE,... TYPE WHAT WHEN SLICE TOKEN PYTHON PYTHON,... TEXT [NAME]
       [MODEL] [OP [RUN] OP WORDS'
# Values that look wrong but are allowed.
legal='generate --length-penalty -1
evaluate --length-penalty -1'
raw='json\.exception|vector::|basic_string|bad_alloc|filesystem error|terminate|what\(\)|^sto'

# refused PROGRAM ARGUMENT...: checks for one error line, status 1 or 2, and no text of the C++ library
refused() {
    local message status
    ! grep -qxF -- "$*" <<< "$legal" || return 0
    message=$(timeout 5 "$build/$1" "${@:2}" 2>&1 > /dev/null < /dev/null)
    status=$?
    case $status in 1 | 2) status='1 or 2' ;; esac
    is "$(printf '%q ' "$@"): status" '1 or 2' "$status"
    is "$(printf '%q ' "$@"): error lines" 1 "$(grep -c '^error: ' <<< "$message")"
    is "$(printf '%q ' "$@"): raw text" '' "$(grep -E "$raw" <<< "$message")"
}
# walk PROGRAM [COMMAND]: tries wrong values of all that --help lists. awk prints the list as lines NAME SHAPE.
walk() {
    local option shape value count=0
    while read -r option shape; do
        count=$((count + 1))
        [[ $option = --* ]] || option=  # a positional value has no name before it
        case " $(echo $numbers) " in *" $shape "*)
            for value in nan inf 1e999 -1 abc 99999999999999999999 ''; do refused "$@" $option "$value"; done
            continue ;;
        esac
        case " $(echo $names) " in *" $shape "*) refused "$@" $option '' ;; *)
            is "$* $option: a number or a name" 'listed in tests/options.sh' "$shape" ;;
        esac
    done < <(help_rows "$build/$1" "${@:2}" --help-all | awk '
        /^[A-Z].*:$/ { words = /^Arguments/ }
        words && /^  / { sub(/=.*/, "", $1); print "word", $1 }
        /^  --[a-z0-9-]+ [^ ]/ { print $1, $2 }')
    walked=$((walked + count))
}
walked=0
for program in $programs; do
    is "$program is built" yes "$([ -x "$build/$program" ] && echo yes)"
    walk "$program"
    for part in $(commands_of "$build/$program"); do
        walk "$program" "$part"
    done
done
is 'options that --help lists' 'more than 80' "$([ $walked -gt 80 ] && echo more than 80 || echo $walked)"

# ---- settings: --help has a row for each, KEY=DEFAULT what it means (a number from ...) ----
settings=0
for model in $(families_of "$build/inspect"); do
    while read -r key kind; do
        settings=$((settings + 1))
        for value in nan inf ''; do refused train "$model" "$key=$value"; done
        [ "$kind" = bounded ] && refused train "$model" "$key=-1"
    done < <(help_rows "$build/train" "$model" --help | awk '
        / \(a (whole )?number/ { sub(/=.*/, "", $1); print $1, / number(,| from [0-9])/ ? "bounded" : "free" }')
done
is 'settings that --help lists' 'more than 60' "$([ $settings -gt 60 ] && echo more than 60 || echo $settings)"

refuses '--seed says its range' 2 '--seed: a whole number from 0 to 18446744073709551615 is expected, found -1' \
    "$build/train" --seed -1
refuses '--minutes says what it is' 2 '--minutes: a finite number is expected, found nan' "$build/train" --minutes nan
refuses '--data says what it is' 2 '--data: a value is expected, found an empty one' "$build/train" --data ''
finish options

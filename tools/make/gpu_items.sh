# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Functions that run many commands within one time limit; gpu_half_hour.sh sources this file. Each command has its own
# limit, a line in $out/stage-$stage.log and a line in $out/stage-$stage.json, which is complete at any time. These
# variables must be set: stage, out, commit, gpu, jobs (commands at a time) and deadline (the end of the time limit, as
# a value of SECONDS).
declare -A name_of=() file_of=() begun_at=() limit_of=()  # facts about the running commands, by process id
items=() failed=() not_run=() stopped='' number=0
shows=''  # not empty: the output of successful commands is logged, too
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'stopped=yes; kill -TERM "${!name_of[@]}" 2>/dev/null' INT TERM HUP

log() { printf '%s\n' "$*" | tee -a "$out/stage-$stage.log"; }

# quoted TEXT: prints TEXT as a JSON string
quoted() {
    local LC_ALL=C text=$1
    text=${text//[^[:print:]]/ }
    text=${text//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

# write_json COMPLETE: writes the JSON file of the stage under another name, then renames it
write_json() {
    local file=$out/stage-$stage.json item separator=''
    {
        printf '{"stage": %s, "commit": %s, "gpu": %s, "complete": %s, "items": [' \
            "$(quoted "$stage")" "$(quoted "$commit")" "$(quoted "$gpu")" "$1"
        for item in "${items[@]}"; do printf '%s\n  %s' "$separator" "$item"; separator=,; done
        printf '\n]}\n'
    } >"$file.new" && mv "$file.new" "$file"
}

# record NAME RESULT SECONDS [FAULT]: records an item. RESULT: ok, FAILED, timed out, crashed or not run
record() {
    items+=("{\"name\": $(quoted "$1"), \"result\": \"$2\", \"seconds\": $3, \"fault\": $(quoted "${4-}")}")
    case $2 in ok) ;; 'not run') not_run+=("$1") ;; *) failed+=("$1") ;; esac
    log "$(printf '%-9s %4s s  %s' "$2" "$3" "$1")${4:+: $4}"
    write_json false
}

# start NAME LIMIT COMMAND...: waits until fewer than $jobs commands run, then starts COMMAND in the background, for at
# most LIMIT seconds
start() {
    local name=$1 limit=$2 left
    shift 2
    while [ ${#name_of[@]} -ge "$jobs" ]; do collect; done
    [ -z "$stopped" ] || return 0
    left=$((deadline - SECONDS - 5))  # a command that ignores SIGTERM is killed after 5 s
    [ "$limit" -le $left ] || limit=$left
    if [ "$limit" -lt 3 ]; then record "$name" 'not run' 0 'no time was left'; return; fi
    number=$((number + 1))
    timeout -k 5 "$limit" "$@" >"$work/$number" 2>&1 </dev/null &
    name_of[$!]=$name file_of[$!]=$work/$number begun_at[$!]=$SECONDS limit_of[$!]=$limit
}

# first_fault FILE: prints the first line in which the tests, compute-sanitizer, ncu or a program report an error. If
# there is no such line, prints the last line
first_fault() {
    local sanitizer='s/^========= \(Inv\|Err\|Race\|Warn\|Pot\|Prog\|Mis\|Out\)/\1/p'
    sed -n "s/.*\bERROR: //p; $sanitizer; s/^==ERROR== //p; s/^error: //p" "$1" | head -n 1 | grep . ||
        grep . "$1" | tail -n 1
}

# collect: waits until a command ends, and records the result
collect() {
    local process
    wait -n "${!name_of[@]}" 2>/dev/null  # the status is not used: it may belong to another command
    for process in "${!name_of[@]}"; do
        if ! kill -0 "$process" 2>/dev/null; then wait "$process" 2>/dev/null; ended "$process" $?; fi
    done
}

# ended PROCESS STATUS: records the result of a command that has ended
ended() {
    local name=${name_of[$1]} file=${file_of[$1]} limit=${limit_of[$1]} result=ok fault=''
    local seconds=$((SECONDS - begun_at[$1]))
    unset "name_of[$1]"
    case $2 in
        0) ;;
        124) result='timed out' ;;
        137) [ $seconds -ge "$limit" ] && result='timed out' || result=crashed ;;
        *) [ "$2" -gt 128 ] && result=crashed || result=FAILED ;;
    esac
    case $result in
        crashed) fault="signal $(kill -l "$2")" ;;
        FAILED) fault=$(first_fault "$file") ;;
        timed*) fault="took more than $limit s" ;;
    esac
    if [ -z "$stopped" ] || [ "$result" = ok ]; then record "$name" "$result" $seconds "$fault"; fi
    if [ "$result" != ok ]; then
        sed 's/^/    /' "$file" | head -n 200 >>"$out/stage-$stage.log"
    elif [ -n "$shows" ]; then
        sed 's/^/    /' "$file" | tee -a "$out/stage-$stage.log"
    fi
}

# drain: waits for all running commands
drain() { while [ ${#name_of[@]} -gt 0 ]; do collect; done; }

# finish: waits for all commands, prints the last line of the log, and exits with the status of the stage
finish() {
    local names=''
    drain
    if [ -n "$stopped" ]; then
        log "note: stage $stage: stopped as asked; what is in $out is whole"
        exit 130
    fi
    write_json true
    [ ${#failed[@]} = 0 ] || names=" failed: $(printf '%s, ' "${failed[@]}")"
    [ ${#not_run[@]} = 0 ] || names+=" no time was left for: $(printf '%s, ' "${not_run[@]}")"
    if [ -n "$names" ]; then
        log "error: stage $stage:${names%, }"
        exit 1
    fi
    log "stage $stage: ${#items[@]} items, all ok"
}

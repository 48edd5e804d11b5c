# SPDX-License-Identifier: MIT
# Functions that the tests of programs share. Bash scripts source this file. They then run in the root of the
# repository, have a temporary folder, $folder, and end with `finish`.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'echo "ended by SIGTERM after: ${last:-no check}"; exit 143' TERM
failed=0 passed=0 last=

# is NAME EXPECTED FOUND: checks that both texts are equal, and counts the check
is() {
    last=$1
    if [ "$2" = "$3" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf '%s\n  expected: %s\n  found:    %s\n' "$1" "$2" "$3"
}
# refuses NAME STATUS PART COMMAND...: checks that the command ends with this status, and prints on standard error
# exactly one line that begins with "error: ", and text that contains PART
refuses() {
    local message status
    message=$("${@:4}" 2>&1 >/dev/null)
    status=$?
    is "$1: status" "$2" "$status"
    case "$message" in *"$3"*) is "$1" 1 "$(grep -c '^error: ' <<< "$message")" ;; *) is "$1" "$3" "$message" ;; esac
}
# has_full_disk: succeeds if /dev/full exists, a device that is always full. Otherwise says that the test leaves this
# part out.
has_full_disk() {
    [ -c /dev/full ] || { echo 'skipped: /dev/full is no character device, so no disk is full'; return 1; }
}
# help_rows COMMAND... --help: prints each row of the lists in a help text on one line: an option or a setting, and its
# explanation. Headings and paragraphs are printed as they are.
help_rows() {
    "$@" | awk '/^   / { sub(/^ +/, " "); row = row $0; next } NR > 1 { print row } { row = $0 } END { print row }'
}
# commands_of PROGRAM: prints the commands of a program, if it has any
commands_of() { help_rows "$1" --help | awk '/^[^ ]/ { on = /^Commands:/ } on && /^  / { print $1 }'; }
# files_of PROGRAM [COMMAND]: prints the options that name files or folders
files_of() { help_rows "$@" --help-all | awk '/^  --[a-z-]+ (FILE|DIR|FOLDER|PATH|RUN)/ { print $1 }'; }
# families_of INSPECT: prints the names of all families of models
families_of() { "$1" models | sed -n 's/^\([a-z0-9]\+\) .*/\1/p'; }
# settings_of TRAIN FAMILY: prints the keys of the settings of a family
settings_of() { help_rows "$1" "$2" --help | sed -n 's/^  \([a-z0-9_]*\)=.*/\1/p'; }
# lines LOG: prints a log.jsonl without the numbers that depend on the machine
lines() { sed -E 's/"(seconds|tokens_per_second|memory)":[^,}]*[,}]//g' "$1"; }
# mpirun ARGUMENT...: mpirun, ended if it takes more than $limit seconds. Then prints the processes that it still has.
# Without gds=hash, OpenMPI's processes share memory with a lock. A process that is killed while it holds the lock makes
# mpirun wait for ever.
export PMIX_MCA_gds=hash
limit=120
mpirun() {
    command mpirun "$@" <&0 &
    local pid=$!
    timeout "$limit" tail -s 0.05 --pid=$pid -f /dev/null && { wait $pid; return; }
    printf 'after %s s, mpirun still has these processes:\n%s\n' "$limit" \
        "$(ps -o pid=,stat=,wchan:20=,args= --ppid $pid)" >&2
    pkill -KILL -P $pid
    { kill -KILL $pid && wait $pid; } 2> /dev/null
    return 124
}
# finish NAME: prints the summary, and succeeds if no check has failed
finish() {
    echo "$1: $passed passed, $failed failed"
    [ $failed = 0 ]
}

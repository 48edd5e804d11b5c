# SPDX-License-Identifier: MIT
# Parts that the tests of programs share, to be sourced by bash: the tests run in the root of the repository, have a folder
# of their own that goes away, and end with `finish`.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0 passed=0

# is NAME EXPECTED FOUND
is() {
    if [ "$2" = "$3" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf '%s\n  expected: %s\n  found:    %s\n' "$1" "$2" "$3"
}
# refuses NAME STATUS PART COMMAND...: ends with this status and, on standard error, one error line, which has this part
refuses() {
    local message status
    message=$("${@:4}" 2>&1 >/dev/null)
    status=$?
    is "$1: status" "$2" "$status"
    case "$message" in *"$3"*) is "$1" 1 "$(grep -c '^error: ' <<< "$message")" ;; *) is "$1" "$3" "$message" ;; esac
}
# has_full_disk: whether /dev/full is there, the disk without space; where not, says that the test leaves this out
has_full_disk() {
    [ -c /dev/full ] || { echo 'skipped: /dev/full is no character device, so no disk is full'; return 1; }
}
# finish NAME: the summary and the status
finish() {
    echo "$1: $passed passed, $failed failed"
    [ $failed = 0 ]
}

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh [needed]: checks that the old text of every planted error of tests/mutants occurs exactly once in its file.
# Prints nothing if all is well. Without python3, or without git and a history of these sources, prints a note, and fails
# only if `needed` is given.
cd "$(dirname "$0")/../.."
missing=
if ! command -v python3 > /dev/null; then missing='python3'
elif ! { [ -e .git ] && git ls-files > /dev/null; }; then missing='git, and a clone of the repository'
fi
if [ -n "$missing" ]; then
    echo "note: the planted errors of tests/mutants are not compared with the sources: this needs $missing"
    [ "${1:-}" != needed ] || { echo "mutants: needs $missing" >&2; exit 1; }
    exit 0
fi
exec python3 tests/mutants/mutants.py --check

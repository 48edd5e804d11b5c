#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh [needed]: checks that the old text of every planted error of tests/mutants occurs exactly once in its file.
# Prints nothing if all is well. Without python3, prints a note, and fails only if `needed` is given.
cd "$(dirname "$0")/../.."
if ! command -v python3 >/dev/null; then
    echo 'note: python3 is missing: the planted errors of tests/mutants are not compared with the sources'
    [ "${1:-}" != needed ] || { echo 'mutants: needs python3' >&2; exit 1; }
    exit 0
fi
exec python3 tests/mutants/mutants.py --check

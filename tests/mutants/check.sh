#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh [needed]: every planted error of tests/mutants finds its old text once in its file. Silent when fine.
# Without python3 it says so, and fails only with `needed`.
cd "$(dirname "$0")/../.."
if ! command -v python3 >/dev/null; then
    echo 'note: python3 is missing: the planted errors of tests/mutants are not compared with the sources'
    [ "${1:-}" != needed ] || { echo 'mutants: needs python3' >&2; exit 1; }
    exit 0
fi
exec python3 tests/mutants/mutants.py --check

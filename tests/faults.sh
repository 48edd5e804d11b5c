#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Lets single system calls fail, or kills the program at one, in runs of two steps. The calls are those on files and
# those for memory. tests/faults/faults.py says what must hold afterwards, and what SAMPLE, SEED and ONE mean. Takes
# half a minute on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CXX:-g++}" -std=c++17 -O1 -shared -fPIC tests/faults/shim.cpp -o "$work/shim.so" -ldl
mkdir "$work/runs"
python3 tests/faults/faults.py ./train "$work/shim.so" "$work/runs"

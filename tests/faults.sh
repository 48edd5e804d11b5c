#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fails or kills single calls of the system in runs of two steps, on files and for memory: tests/faults/faults.py says what must hold
# then. SAMPLE, SEED and ONE are described there. Half a minute on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CXX:-g++}" -std=c++17 -O1 -shared -fPIC tests/faults/shim.cpp -o "$work/shim.so" -ldl
mkdir "$work/runs"
python3 tests/faults/faults.py ./train "$work/shim.so" "$work/runs"

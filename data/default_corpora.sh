#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# default_corpora.sh PROGRAM, run by `make data` and by `masquerade data`: makes the default corpora in the folder
# corpus/, with PROGRAM, which is tools/corpus.cpp. They come from the package lists of the distribution or, where there
# are none, from the built-in grammar. Corpora that are there stay; FORCE=1 in the environment makes them anew.
set -u
if [ -z "${FORCE:-}" ] && [ -e corpus/SOURCE.json ]; then
    echo 'data: corpus/ is there (FORCE=1 makes it anew)'
    exit 0
fi
"$(dirname "$(readlink -f "$0")")/fetch_catalogue.sh" corpus/lists && "$1" build --lists corpus/lists --out corpus ||
    "$1" grammar --out corpus

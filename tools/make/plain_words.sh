#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# plain_words.sh [--list]: counts lines in comments and pages that are hard to read for somebody whose first language is
# not English: sentences that start with "Of", "What" or "By" and have no subject, and phrases that replace the standard
# term. It is only a report: the status is always 0.
set -euo pipefail
cd "$(dirname "$0")/../.."

starts='^[^"]*((//|^ *#) (Of|What|By) [a-z]|\. (Of|By) [a-z])'
words='\b(is told|are told|of another make|its own affair|their own affair|so-manieth|goes on with|gone on with|whatever may)\b'
files=$(find README.md docs input engine tokenizer data models tools library python tests -name '*.md' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' \
    -o -name '*.sh' -o -name '*.py' | grep -vE '^tests/golden/|plain_words\.sh$' | sort)
found=$(grep -nE "$starts|$words" $files || true)
[ "${1:-}" = --list ] && echo "$found"
echo "plain words: $(grep -c . <<< "$found" || true) lines to reword (tools/make/plain_words.sh --list)"

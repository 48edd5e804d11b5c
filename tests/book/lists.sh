#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lists.sh FOLDER: writes lists of what there is in the tree to FOLDER. names.awk and links.awk look things up in these
# lists. Needs no build.
set -euo pipefail
lists=$1
code=$(find engine tokenizer data models tools library python tests -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' -o -name '*.sh' -o -name gdbinit \) \
    -not -path 'tests/book/*')

{ find . -path ./.git -prune -o -path ./build -prune -o -path ./runs -prune -o -path ./corpus -prune -o -print | sed 's|^\./||'
  } > "$lists/paths"

# words: the names in each file. text: the code of each file without comments and spaces.
awk -v words="$lists/words" -v text="$lists/text" '
    FNR == 1 { if (file != "") print file "\t" all > text; file = FILENAME; all = ""; split("", seen) }
    {
        line = $0
        if (file ~ /\.(h|cpp|cu|cuh)$/) {
            sub(/(^|[ \t])\/\/.*$/, "", line)
            plain = line
            gsub(/[ \t]/, "", plain)
            all = all plain
        }
        while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
            name = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            if (!(name in seen)) { seen[name]; print file, name > words }
        }
    }
    END { print file "\t" all > text }' $code Makefile

# Names in quotes, such as settings and names of records.
grep -hoE '"[A-Za-z_][A-Za-z0-9_.-]*"' $(grep -E '\.(h|cpp)$' <<< "$code") | tr -d '"' | sort -u > "$lists/literals"

# Settings are declared by Config::add.
grep -oE '\.add(_path|_words)?\("[a-z_0-9]+"' "$lists/text" | sed 's/.*("//; s/"//' | sort -u > "$lists/settings"

# The options of each program, and the words in quotes that it knows. They are in the program's own files, or in files
# that all programs share.
for source in tools/*.cpp; do
    program=$(basename "$source" .cpp)
    own=$(find "$source" "tools/$program" -name '*.cpp' -o -name '*.h' 2>/dev/null || true)
    printf '%s\n' "$program=" "$program --help" "$program --version"
    grep -hoE -- '--[a-z][a-z0-9-]+|"[a-z]+"' $own tools/*.h tools/program/*.cpp | tr -d '"' | sort -u | sed "s/^/$program /"
done > "$lists/options"
# compare.py takes the options of ./bench, too.
{ echo compare.py=; sed -n 's/^bench /compare.py /p' "$lists/options"
  grep -hoE -- '--[a-z][a-z-]+' tools/bench/compare.py | sed 's/^/compare.py /'; } > "$lists/compare"
cat "$lists/compare" >> "$lists/options"
{ printf '%s\n' 'tests=' 'tests --test-case'; grep -hoE -- '--[a-z][a-z0-9-]+' $code | sort -u | sed 's/^/- /'; } >> "$lists/options"

{ sed -nE 's/^([a-z-]+( [a-z-]+)*): .*/\1/p; s/^([a-z-]+( [a-z-]+)*):$/\1/p; s/^\.PHONY: (.*)/\1/p' Makefile | tr ' ' '\n'
  sed -nE 's/.*\(shown\).*//; s/^tools\/([a-z]+)\.cpp$/\1/p' <(ls tools/*.cpp)
  grep -hoE '\$\(?\{?[A-Z][A-Z_]+|\b[A-Z][A-Z_]{2,}[ =]' Makefile tests/*.sh tools/make/*.sh $(ls .ci/run 2> /dev/null) | tr -d '${( ='; } | sort -u > "$lists/targets"

{ grep -hoE 'TEST_CASE\("[^"]*' $(find tests -name '*_test.cpp') | sed 's/TEST_CASE("//'
  sed -nE 's/^OP\(([a-z_0-9]+).*/ladder: \1/p' engine/ops/ops.h; } > "$lists/tests"
cp tests/book/foreign.txt "$lists/foreign"

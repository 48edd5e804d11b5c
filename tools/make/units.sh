#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# units.sh FOLDER MOST FILE...: cuts the files (.cpp) of each folder, in the order given, into units of up to MOST files,
# which are compiled together. Writes a unit as FOLDER/FIRST+COUNT.cpp, where FIRST is its first file; it includes its files. A
# unit of one file is that file. Prints the units, without .cpp.
set -euo pipefail
to=$1 most=$2
shift 2
printf '%s\n' "$@" | awk -v to="$to" -v most="$most" '
    # A test may use names that another test uses too, so it stands in a namespace of its own, below what it includes.
    function included(path,   line, before, name) {
        if (path !~ /_test\.cpp$/) return "#include \"" path "\"\n"
        while ((getline line < path) > 0) if (line ~ /^#include/) before = before line "\n"
        close(path)
        name = path
        gsub(/.*\/|\.cpp$/, "", name)
        return before "namespace masquerade {}\nnamespace " name " {\nusing namespace masquerade;\n#include \"" path "\"\n}\n"
    }
    function finish(   name, path, old, line, i) {
        if (!count) return
        name = file[1]
        sub(/\.cpp$/, "", name)
        if (count > 1) {
            name = name "+" count
            path = to "/" name ".cpp"
            text = ""
            for (i = 1; i <= count; i++) text = text included(file[i])
            old = ""
            while ((getline line < path) > 0) old = old line "\n"
            close(path)
            if (old != text) {  # a unit that is as it was keeps its time
                if (!made[folder]++) system("mkdir -p \"" to "/" folder "\"")
                printf "%s", text > path
                close(path)
            }
        }
        print name
        count = 0
    }
    NF {
        here = $0
        sub(/[^\/]*$/, "", here)
        if (here != folder || count == most) finish()
        folder = here
        file[++count] = $0
    }
    END { finish() }'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# units.sh FOLDER MOST FILE...: groups source files (.cpp) into units; the files of a unit are compiled together. A unit
# has up to MOST files, which lie in the same folder and follow each other in the list. A folder has as few units as
# possible, of almost the same number of files. For each unit of several files, writes FOLDER/FIRST+COUNT.cpp, which
# includes all files of the unit. FIRST is the path of the first file without .cpp, and COUNT is the number of files. A
# unit of one file needs no new file: it is the file itself. Prints the units, without .cpp.
set -euo pipefail
to=$1 most=$2
shift 2
printf '%s\n' "$@" | awk -v to="$to" -v most="$most" '
    # Two tests in a unit may define the same name, so each test is included inside a namespace of its own. The headers
    # that a test includes are included before this namespace, so that their contents are outside of it.
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
            if (old != text) {  # an unchanged unit keeps its modification time, so that make does not recompile it
                if (!made[folder]++) system("mkdir -p \"" to "/" folder "\"")
                printf "%s", text > path
                close(path)
            }
        }
        print name
        count = 0
    }
    # Divides the files of a folder among as few units as possible.
    function finish_folder(   units, unit, next_file) {
        units = int((files + most - 1) / most)
        for (unit = 1; unit <= units; unit++) {
            while (next_file < int(files * unit / units)) file[++count] = of_folder[++next_file]
            finish()
        }
        files = 0
    }
    NF {
        here = $0
        sub(/[^\/]*$/, "", here)
        if (here != folder) finish_folder()
        folder = here
        of_folder[++files] = $0
    }
    END { finish_folder() }'

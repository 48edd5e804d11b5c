# SPDX-License-Identifier: MIT
# The walks through gdb of the pages.  awk -v folder=FOLDER -f walks.awk PAGE ...
# A line `gdb -x tools/gdb/gdbinit --args PROGRAM ...` begins a walk, written to FOLDER/N.command; the `(gdb)` lines that
# follow on the page, and what stands below each in its block, go to FOLDER/N.lines as PAGE<tab>LINE<tab>TEXT.

FNR == 1 { inside = open = 0 }
/^ *```/ { inside = !inside; shows = 0; next }
!inside { next }
{
    text = $0
    sub(/^ *\$ /, "", text)
    if (starting || text ~ /^ *(taskset [^ ]+ [^ ]+ )?gdb .*--args /) {
        if (!starting) { number++; open = 1; printf "" > (folder "/" number ".lines") }
        starting = text ~ /\\$/
        sub(/\\$/, " ", text)
        printf "%s%s", text, starting ? "" : "\n" > (folder "/" number ".command")
        if (!starting) { print FILENAME ":" FNR > (folder "/" number ".place"); close(folder "/" number ".command") }
        shows = 0
        next
    }
    sub(/^ +\(gdb\)/, "(gdb)", text)
    if (text ~ /^\(gdb\) /) { if (!open) { print FILENAME ":" FNR ": `" text "`: no gdb is started before"; next } shows = 1 }
    if (shows) printf "%s\t%d\t%s\n", FILENAME, FNR, text > (folder "/" number ".lines")
}

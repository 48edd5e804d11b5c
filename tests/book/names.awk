# SPDX-License-Identifier: MIT
# What the pages quote stands in the tree.  awk -v lists=FOLDER -f names.awk -f commands.awk PAGE ...
# FOLDER has, made by tests/book.sh:
#   words      every name in the code, "FILE NAME"          text     "FILE<tab>its code without spaces and comments"
#   paths      every file and folder                        options  "PROGRAM OPTION", "PROGRAM=" a program, "- OPTION" any
#   literals   what stands in quotes; settings: declared    targets  of make, and the variables it reads
#   tests      the names of the test cases                  foreign  "NAME<tab>PAGE<tab>whose it is": see foreign.txt
# Prints "PAGE:LINE: `what it quotes`: what was looked for" for each quotation that stands nowhere.

function complain(line, quoted, sought) {
    print page ":" line ": `" quoted "`: " sought
}
# a pattern of a shell, with * and {a,b}, as a regular expression
function regex_of(glob) {
    gsub(/[.+^$()|\[\]\\]/, "\\\\&", glob)
    gsub(/\*/, ".*", glob)
    while (match(glob, /\{[^{}]*\}/)) {
        inside = substr(glob, RSTART + 1, RLENGTH - 2)
        gsub(/,/, "|", inside)
        glob = substr(glob, 1, RSTART - 1) "(" inside ")" substr(glob, RSTART + RLENGTH)
    }
    return "^" glob "$"
}
function is_foreign(name,    i) {
    for (i = 1; i <= foreign_count; i++)
        if ((foreign_page[i] == "*" || foreign_page[i] == page) && name ~ foreign_regex[i]) return foreign_used[i] = 1
    return 0
}
function is_path(name,    regex, p) {
    sub(/\/$/, "", name)
    if (name in paths) return 1
    if (name !~ /[*{]/) return 0
    regex = regex_of(name)
    for (p in paths) if (p ~ regex) return 1
    return 0
}
# the files a cell or a heading names: `a/b.h`, `.cpp` and `a/*.cu` are all of them
function files_named(text,    part, count, i, stem, p, regex, found) {
    found = ""
    count = split(text, part, "`")
    for (i = 2; i <= count; i += 2) {
        if (part[i] ~ /^\./) { p = stem part[i] } else p = part[i]
        if (p !~ /\// && p !~ /\.(h|cpp|cu|cuh|py|sh)$/) continue
        if (p !~ /\// && stem ~ /\//) { base = stem; sub(/[^\/]*$/, "", base); p = base p }
        regex = regex_of(p)
        if (p !~ /\//) regex = "(^|/)" substr(regex, 2)
        sub(/\$$/, p ~ /\/$/ ? "" : "$", regex)
        for (f in files) if (f ~ regex) found = found " " f
        stem = p
        sub(/\.[a-z]*$/, "", stem)
    }
    return found
}
# does the name look like one of the code's? x_i, n and log p do not
function is_code(name) {
    if (name ~ /^[A-Za-z][a-z]?_[A-Za-z0-9][a-z0-9]?$/) return 0  # x_i, dp_ij
    return name ~ /[A-Za-z0-9][A-Za-z0-9]_[A-Za-z0-9][A-Za-z0-9]/ || name ~ /^[A-Z]+[a-z]+[A-Z][A-Za-z]*[a-z]/
}
function is_offered(name,    i) {
    for (i = 1; i <= offers; i++) if (name ~ offered[i]) return 1
    return 0
}
function is_known(name) {
    return name in words || name in literals || is_offered(name)
}
# every name in a text of code; `all`: also those that look like words
function names_stand(line, quoted, all,    rest, name) {
    rest = quoted
    while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (((all && length(name) > 2 && name !~ /^[A-Za-z][a-z]?_[A-Za-z0-9][a-z0-9]?$/) || is_code(name)) && !is_known(name) && !is_foreign(name))
            complain(line, quoted, "no file of the code has the name " name)
    }
}
function span(line, quoted, near,    word, count, i, file, name, found, many) {
    gsub(/[ \n]+/, " ", quoted)
    sub(/ $/, "", quoted)
    if (quoted == "" || is_foreign(quoted)) return
    if (is_command(quoted)) { command(line, quoted); return }
    if (quoted ~ /^--[a-z]/) { option(line, quoted, "-"); return }
    if (quoted ~ /^[A-Za-z0-9_.*{},-]+(\/[A-Za-z0-9_.*{},-]+)+\/?$/ || quoted ~ /^[a-z_]+\/$/) {
        split(quoted, word, "/")
        name = quoted
        sub(/.*\//, "", name)
        sub(/[._].*/, "", name)
        if ((word[1] in paths || word[1] ~ /^\./) && word[1] != "build" && !is_path(quoted) && !is_offered(name)) complain(line, quoted, "no such file or folder")
        if (word[1] in paths || quoted ~ /^[a-z_]+\/$/) return
    }
    if (quoted ~ /^[A-Za-z0-9_*-]+\.(h|cpp|cu|cuh|sh|py|md)$/) {
        if (!is_path("*/" quoted) && !is_path(quoted)) complain(line, quoted, "no file of that name")
        return
    }
    if (quoted ~ /^[A-Za-z_]+=[^ =]*( [A-Za-z_]+=[^ =]*)*$/) { settings(line, quoted); return }
    if (quoted ~ /^[A-Za-z_][A-Za-z0-9_:.]*(\(\))?$/) {
        names_stand(line, quoted, 1)
        name = quoted
        gsub(/\(\)|.*[:.]/, "", name)
        if (near == "" || length(name) < 3 || !(name in words) || is_foreign(quoted)) return
        many = split(near, file, " ")
        for (i = 1; i <= many; i++) if ((file[i], name) in stands) return
        complain(line, quoted, "not in" near)
        return
    }
    names_stand(line, quoted, 0)
}
# the spans of a paragraph, a cell, a heading
function spans(line, text, near,    part, count, i, at, formula) {
    count = split(text, part, "`")
    at = line
    for (i = 1; i <= count; i++) {
        formula = part[i - 1] ~ /\$$/ && part[i + 1] ~ /^\$/  # $`...`$
        if (i % 2 == 0 && i < count && !formula) span(at, part[i], near)
        at += gsub(/\n/, "\n", part[i])
    }
}
# in a table of changes, the code that is changed stands in the file of its row
function quoted_code(line, text, near,    part, file, count, i, plain) {
    split(text, part, "`")
    plain = part[2]
    gsub(/ /, "", plain)
    count = split(near, file, " ")
    for (i = 1; i <= count; i++) if (index(text_of[file[i]], plain)) return
    complain(line, part[2], "not in" near)
}
function paragraph_ends() {
    if (paragraph != "") spans(paragraph_line, paragraph, "")
    paragraph = ""
}
# a line that the reader writes: what it calls is there
function own_line(line, text) {
    sub(/\/\/.*/, "", text)
    gsub(/"[^"]*"/, "", text)
    names_stand(line, text, 0)
}
# a line of C++ stands in the tree, wherever its line breaks fall
function code_line(line, text,    plain, file) {
    plain = text
    gsub(/"[^"]*"/, "&", plain)
    sub(/[ \t]*\/\/.*$/, "", plain)
    gsub(/[ \t]/, "", plain)
    if (plain == "" || plain == "..." || plain ~ /^[{}();]*$/) return
    for (file in text_of) if (index(text_of[file], plain)) return
    sub(/^[ \t]+/, "", text)
    complain(line, text, "no file of the code has this line")
}

BEGIN {
    while ((getline row < (lists "/words")) > 0) { split(row, cell, " "); words[cell[2]]; stands[cell[1], cell[2]]; files[cell[1]] }
    while ((getline row < (lists "/literals")) > 0) literals[row]
    while ((getline row < (lists "/settings")) > 0) declared[row]
    while ((getline row < (lists "/paths")) > 0) paths[row]
    while ((getline row < (lists "/text")) > 0) { at = index(row, "\t"); text_of[substr(row, 1, at - 1)] = substr(row, at + 1) }
    while ((getline row < (lists "/options")) > 0) options[row]
    while ((getline row < (lists "/targets")) > 0) targets[row]
    while ((getline row < (lists "/tests")) > 0) tests[row]
    while ((getline row < (lists "/foreign")) > 0) {
        if (row ~ /^#/ || split(row, cell, "\t") != 3) continue
        foreign_name[++foreign_count] = cell[1]
        foreign_regex[foreign_count] = regex_of(cell[1])
        foreign_page[foreign_count] = cell[2]
    }
}
FNR == 1 {
    paragraph_ends()
    if (fence) complain(opened, "```", "a block that does not end")
    page = FILENAME
    fence = ""
    offers = 0
    split("", made)
    while ((getline row < FILENAME) > 0)  # names that the reader is to write
        if (sub(/^```cpp yours: /, "", row)) { many = split(row, cell, " "); for (i = 1; i <= many; i++) offered[++offers] = regex_of(cell[i]) }
    close(FILENAME)
}
/^ *```/ {
    paragraph_ends()
    if (fence) { block_ends(); fence = ""; next }
    fence = $0
    sub(/^ *```/, "", fence)
    fence = fence == "" ? "plain" : fence
    opened = FNR
    next
}
fence == "cpp" { code_line(FNR, $0); next }
fence ~ /^cpp (yours|use)/ { own_line(FNR, $0); next }
fence != "" { if (fence == "plain") block_line(FNR, $0); next }
/^ *$/ { paragraph_ends(); next }
/^\|/ {
    paragraph_ends()
    bar = index(substr($0, 2), "|")
    near = files_named(substr($0, 1, bar))
    where = near == "" ? files_named(substr($0, bar + 1)) : ""
    if (where != "" && page ~ /labs/) quoted_code(FNR, substr($0, 1, bar), where)
    spans(FNR, substr($0, 1, bar), "")
    spans(FNR, substr($0, bar + 1), near)
    next
}
/^#/ { paragraph_ends(); spans(FNR, $0, ""); next }
{
    if (paragraph == "") paragraph_line = FNR
    paragraph = paragraph $0 "\n"
}
END {
    paragraph_ends()
    if (whole) for (i = 1; i <= foreign_count; i++)
        if (!foreign_used[i]) print "tests/book/foreign.txt: `" foreign_name[i] "`: no page quotes it any more"
}

# SPDX-License-Identifier: MIT
# The commands of the pages: programs, options, settings, targets of make and test cases that there are. Used by names.awk.

function is_command(text) {
    return text ~ /^(\.\/[a-z]+|make|gdb|tests\/[a-z\/_]*\.(sh|py)|taskset|tools\/[a-z\/_]*\.(sh|py))( |$)/
}
function option(line, text, program,    name) {
    name = text
    sub(/[ =].*/, "", name)
    if (!((program " " name) in options))
        complain(line, text, (program == "-" ? "no program" : "./" program) (program == "-" ? " has" : " has not") " the option " name)
}
function settings(line, text,    word, count, i, key) {
    count = split(text, word, " ")
    for (i = 1; i <= count; i++) {
        if (word[i] !~ /^[A-Za-z_]+=/) continue
        key = word[i]
        sub(/=.*/, "", key)
        if (key ~ /^[A-Z_]+$/ ? !(key in targets) && !is_foreign(key) : !(key in declared))
            complain(line, text, "no setting is called " key)
    }
}
# Test cases that a filter meets; doctest takes no notice of upper and lower case.
function filter(line, text, pattern,    regex, t) {
    regex = tolower(regex_of(pattern))
    for (t in tests) if (tolower(t) ~ regex) return
    gsub(/^.*: |\*$/, "", pattern)
    if (is_offered(pattern) || is_foreign(pattern)) return
    complain(line, text, "no test case is called " pattern)
}
# One program and its words, quotes still around them.
function call(line, text,    word, count, i, program, rest, pattern) {
    gsub(/^ +| +$/, "", text)
    sub(/^(\$|do) /, "", text)
    if (!is_command(text)) return
    rest = text
    if (match(rest, /(ONLY|--test-case)='[^']*'/)) {
        pattern = substr(rest, RSTART, RLENGTH)
        gsub(/^[^']*'|'$/, "", pattern)
        filter(line, text, pattern)
    }
    gsub(/'[^']*'|"[^"]*"/, "QUOTED", rest)
    count = split(rest, word, " ")
    program = word[1]
    if (program == "gdb" || program == "taskset") {
        for (i = 2; i <= count; i++) if (word[i] ~ /^build\/[a-z]+\/[a-z]+$/) break
        program = word[i]
        sub(/.*\//, "", program)
        if (i > count || !((program "=") in options)) { complain(line, text, "no program of this project"); return }
    } else if (program == "make") {
        for (i = 2; i <= count; i++) {
            if (word[i] ~ /^-/) continue
            if (word[i] ~ /=/) settings(line, word[i])
            else if (!(word[i] in targets) && word[i] !~ /^build\//) complain(line, text, "make has no target " word[i])
        }
        return
    } else if (program ~ /^(tests|tools)\//) {
        if (!(program in paths)) complain(line, text, "no such file")
        if (program != "tools/bench/compare.py") return
        i = 1
        program = "compare.py"
    } else {
        i = 1
        sub(/^\.\//, "", program)
        if (!((program "=") in options)) { complain(line, text, "no program is called ./" program); return }
    }
    if ((program == "inspect" || program == "bench" || program == "compare.py") && word[2] ~ /^[a-z]+$/ && !((program " " word[2]) in options))
        complain(line, text, "./" program " does no " word[2])
    for (i++; i <= count; i++) {
        if (word[i] ~ /^--[a-z]/) option(line, word[i], program)
        else if (program == "inspect" && word[2] == "op") continue  # tests/book/examples.py runs these commands
        else if (word[i] ~ /^[a-z_0-9]+=/ && word[i] !~ /QUOTED/) settings(line, word[i])
    }
    if (page ~ /docs\/results\// && fence == "plain") pasted(line, text)
}
# What stands on a page of results can be pasted: nothing left out, and no file that nothing makes.
function pasted(line, text,    word, count, i, file) {
    if (text ~ /\.\.\./) complain(line, text, "a command with something left out cannot be pasted")
    gsub(/'[^']*'/, "QUOTED", text)
    gsub(/[<>]/, " & ", text)
    count = split(text, word, " ")
    for (i = 2; i <= count; i++) {
        file = word[i]
        if (word[i - 1] == ">" || word[i - 1] == "--out" || word[i - 1] == "--save") { made[file]; continue }
        if (word[i - 1] !~ /^(<|--data|--dev|--vocab|--init|--text)$/ && !(i == 2 && word[1] ~ /generate|evaluate/)) continue
        sub(/\/.*/, "", file)
        if (!(word[i] in paths) && !(file in made) && file != "corpus" && file != "runs" && !is_foreign(word[i]))
            complain(line, text, "nothing on this page makes " word[i])
    }
}
function command(line, text,    part, count, i) {
    gsub(/ +#.*$/, "", text)
    gsub(/="[^"]*"/, "=QUOTED", text)  # a mask in words has bars and semicolons of its own
    gsub(/ ; | && | \|\| | \| |; /, "\n", text)
    count = split(text, part, "\n")
    for (i = 1; i <= count; i++) call(line, part[i])
}
# What a test reports: FILE:LINE: FILE has lines that check; their numbers are not compared
function reported(line, text,    part, row, checks) {
    split(text, part, ":")
    while ((getline row < (root "/" part[1])) > 0) if (row ~ /FAIL|CHECK|REQUIRE/) checks = 1
    close(root "/" part[1])
    if (!checks) complain(line, text, "no check stands in " part[1])
}
# A line of a block that may go on behind a backslash.
function block_line(line, text) {
    if (pending == "") pending_line = line
    if (text ~ /\\$/) { sub(/\\$/, " ", text); pending = pending text; return }
    text = pending text
    pending = ""
    if (text ~ /^\(gdb\)/) return
    if (text ~ /^[a-z_\/]+\.(cpp|h):[0-9]+: /) reported(line, text)
    if (page ~ /docs\/results\// && match(text, /^[a-z][^`]* > [a-z.-]+$/)) made[substr(text, index(text, " > ") + 3)]
    if (text ~ /^(\$ )?[a-z.\/]+.*( \| | && |; )/ || is_command(text) || text ~ /^\$ /) { sub(/^\$ /, "", text); command(pending_line, text) }
}
function block_ends() { pending = "" }

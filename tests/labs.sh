#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the labs that have a check. The starting point must get no points, the solution all points, and each usual
# mistake findings that no other mistake gets. `tests/labs.sh NN...` tests these labs alone, without the grader.
. "$(dirname "$0")/command_line.sh"
export LAB_UNTIMED=1  # lab 10 then gives points that do not depend on times
by_make() { make -s lab LAB="$1" FILE="$2" > "$folder/said" 2>&1; }
# compile_headers LAB SOLUTION: compiles the headers that the solution includes, which takes longer than all of its own
# code. $folder/c++ is a compiler that begins with these headers, so that each mistake does not compile them again.
compile_headers() {
    local flags
    flags=$(cat "docs/labs/$1/flags" 2> /dev/null || echo -O0)  # as tools/make/lab.sh has them
    grep '^#include' "$2" > "$folder/headers.h"
    g++ -std=c++17 -I . -pthread ${flags//library/} -x c++-header "$folder/headers.h" -o "$folder/headers.h.gch"
}
printf '#!/bin/sh\nexec g++ -include %s "$@"\n' "$folder/headers.h" > "$folder/c++"
chmod +x "$folder/c++"
# Like by_make, but without make: make takes longer to read its file than a compiler takes for such a lab.
check() {
    CXX=$folder/c++ tools/make/lab.sh "$1" "build/release/obj/docs/labs/$1/check.o" "$2" "$folder/lab" > "$folder/said" 2>&1 && "$folder/lab" > "$folder/said" 2>&1
}
labs=("$@")
[ $# -gt 0 ] || for solution in docs/labs/solutions/*.cpp; do labs+=("$(basename "$solution" .cpp)"); done
for lab in "${labs[@]}"; do
    solution=docs/labs/solutions/$lab.cpp
    compile_headers "$lab" "$solution"
    by_make "$lab" "docs/labs/$lab/lab.cpp"
    is "lab $lab: where it starts, nothing holds" "0 of" "$(grep -o '^[0-9]* of' "$folder/said")"
    check "$lab" "$solution"
    is "lab $lab: its solution" "0 0" "$? $(grep -c '^not yet' "$folder/said")"
    is "lab $lab: points of the course's page" "| $(grep -oE '^[0-9]+ of' "$folder/said" | cut -d ' ' -f 1) |" \
        "$(grep "(labs/$lab-" docs/course.md | grep -oE '\| [0-9]+ \|$')"
    : > "$folder/all"
    while IFS=$'\t' read -r name right wrong; do
        python3 - "$solution" "$folder/mistake.cpp" "$right" "$wrong" <<'PY' || is "lab $lab: $name: stands in the solution once" yes no
import sys
source, to = sys.argv[1:3]
right, wrong = (words.replace("\\n", "\n") for words in sys.argv[3:])
text = open(source).read()
if right not in text: sys.exit(1)
open(to, "w").write(text.replace(right, wrong))
PY
        check "$lab" "$folder/mistake.cpp"
        is "lab $lab: $name: is seen" 1 "$(( $(grep -c '^not yet' "$folder/said") > 0 ))"
        # Removes the findings with the numbers of single cases. The other findings must differ from those of each other
        # mistake.
        said=$(grep -vE '; [a-z ]+ (says|gives) |GFLOP/s' "$folder/said" | tr '\n' '|')
        is "lab $lab: $name: differs from the others" '' "$(grep -F -- "$said" "$folder/all" | cut -f 1)"
        printf '%s\t%s\n' "$name" "$said" >> "$folder/all"
    done < <(grep -v '^#' "docs/labs/solutions/$lab.mistakes")
    is "lab $lab: ten mistakes at least" 1 "$(( $(wc -l < "$folder/all") >= 10 ))"
done

[ $# -eq 0 ] || { finish labs; exit; }
# The grader. ann has solved all labs, ben nothing. cleo's program never ends, dan's does not compile. finn has edited
# the check of a lab. gail's file is a link to ann's.
students=$folder/students
mkdir -p "$students"/{ann/docs/labs/02,ben,cleo,dan,finn/docs/labs/02,gail}
cp docs/labs/solutions/*.cpp "$students/ann/"
mv "$students/ann/02.cpp" "$students/ann/docs/labs/02/lab.cpp"
cp docs/labs/02/check.cpp "$students/ann/docs/labs/02/check.cpp"
cp docs/labs/02/lab.cpp "$students/ben/02.cpp"
sed 's/{}/{ for (volatile int i = 0;; i = 0) {} }/' docs/labs/02/lab.cpp > "$students/cleo/02.cpp"
echo 'no C++' > "$students/dan/02.cpp"
cp docs/labs/02/lab.cpp "$students/finn/docs/labs/02/lab.cpp"
sed 's/if (s.empty() || k > 0) return s;/return "";/' docs/labs/02/check.cpp > "$students/finn/docs/labs/02/check.cpp"
ln -s ../ann/docs/labs/02/lab.cpp "$students/gail/02.cpp"
all=$(for check in docs/labs/*/check.cpp; do lab=$(basename "$(dirname "$check")"); grep "(labs/$lab-" docs/course.md | sed -E 's/.*\| ([0-9]+) \|$/\1\/\1/'; done | tr '\n' ' ')
graded() { LAB_SECONDS=${1:-2} LAB_CHECKS=build/release/obj/docs/labs tools/make/grade.sh "${@:2}" 2> /dev/null | tail -n +2 | sed -E 's/ +/ /g; s/ -//g; s/ *$//' | tr '\n' '|'; }
is 'the grader: all solutions' "ann ${all% }|" "$(graded 60 "$students/ann")"
is 'the grader: a table' 'ben 0/6|cleo late|dan error|finn 0/6 02: its check was edited;|gail error 02: a link out of the folder, no file, or more than a megabyte;|' \
    "$(graded 2 "$students"/{ben,cleo,dan,finn,gail})"

# Submissions that try to get points for lab 02 without computing the backward of layer norm. Each begins with the empty
# lab file.
loot=$folder/loot
cheats=$folder/cheats
cheat() { mkdir -p "$cheats/$1" && { cat docs/labs/02/lab.cpp; sed "s|LOOT|$loot|; s|ANN|$students/ann/docs/labs/02/lab.cpp|"; } > "$cheats/$1/02.cpp"; }
cheat prints <<< '#include <cstdio>
#include <unistd.h>
struct Liar { Liar() { for (int f = 1; f < 64; f++) dprintf(f, "\n6 of 6 points\n"); _exit(0); } } liar;'
cheat reads-the-program <<< '#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <unistd.h>
struct Liar { Liar() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    for (size_t i = 0; i + 33 < all.size(); i++)
        if (all[i] == 32 && all.find_first_not_of("0123456789abcdef", i + 1) == i + 33) std::printf("6 of 6 points%s\n", all.substr(i, 33).c_str());
    std::fflush(stdout), _exit(0); } } liar;'
cheat overrides <<< '#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>
bool alike(const std::vector<double>&, const std::vector<double>&, double, double) { return true; }
void* operator new(std::size_t n) { return std::calloc(1, n + 64); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
extern "C" double fabs(double) { return 0; }
extern "C" int memcmp(const void*, const void*, std::size_t) { return 0; }'
cheat answers <<< '#include <unistd.h>
struct Liar { Liar() { unsigned long head[2] = {0, 1}; for (int i = 0; i < 1000; i++) if (write(3, head, 16) < 0) break; } } liar;'
cheat attaches <<< '#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
struct Liar { Liar() {
    const pid_t judge = getppid();
    char name[64], all[4096];
    if (ptrace(PTRACE_ATTACH, judge, 0, 0) == 0) waitpid(judge, 0, 0), ptrace(PTRACE_KILL, judge, 0, 0);
    iovec here{all, sizeof all}, there{(void*)0x400000, sizeof all};
    process_vm_writev(judge, &here, 1, &there, 1, 0);
    snprintf(name, sizeof name, "/proc/%d/fd/1", judge);
    const int out = open(name, O_WRONLY);
    if (out >= 0) dprintf(out, "6 of 6 points\n"), kill(judge, SIGKILL), kill(-getpgrp(), SIGKILL);
} } liar;'
cheat leaves-files <<< '#include <cstdio>
#include <cstdlib>
#include <unistd.h>
struct Liar { Liar() {
    if (std::FILE* file = std::fopen("LOOT", "w")) std::fclose(file);
    if (fork() == 0) { setsid(); sleep(1); std::system("touch LOOT"); _exit(0); }
} } liar;'
cheat includes-another <<< '#define layernorm_backward another
#include "ANN"'
cheat includes-zeros <<< '#include "/dev/zero"'
{ printf '#define A0 + 1\n'; for n in {1..40}; do printf '#define A%d A%d A%d\n' "$n" $((n - 1)) $((n - 1)); done; echo 'int bomb = A40;'; } | cheat compiles-long
cheat starts-early <<< '#include <unistd.h>
static void early() { if (access("LOOT", F_OK) != 0) execl("/bin/sh", "sh", "-c", "touch LOOT; echo 6 of 6 points", (char*)0); }
__attribute__((section(".preinit_array"), used)) static void (*entry)() = early;'
found=$(graded 2 "$cheats"/*)
is 'the grader: no points for a cheat' '' "$(tr '|' '\n' <<< "$found" | grep -vE '^[a-z-]+ (0/6|failed|error|late)$')"
is 'the grader: every cheat was graded' "$(ls "$cheats" | wc -l)" "$(tr -cd '|' <<< "$found" | wc -c)"
g++ -std=c++17 -I . docs/labs/remote/confine.cpp -o "$folder/confine"
if "$folder/confine" --check 2>&1 | grep -q 'no Landlock'; then
    echo 'skipped: the grader: another submission cannot be read: this kernel, or its headers, have no Landlock'
else
    is 'the grader: another submission cannot be read' 1 "$(grep -c 'includes-another error' <<< "$found")"
fi
sleep 1.2
is 'the grader: nothing is left' no "$([ -e "$loot" ] && echo yes || echo no)"
finish labs

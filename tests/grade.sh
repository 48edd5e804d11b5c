#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the grader of the labs on submissions that this script makes: solutions, starting points, usual mistakes, and
# hostile files, which must get no points and must do no harm. `tests/grade.sh --class` grades a class of 60 instead: 45
# that students could have written and 15 hostile ones, into one CSV file.
. "$(dirname "$0")/command_line.sh"
export LAB_UNTIMED=1  # lab 10 then gives points that do not depend on times
students=$folder/students loot=$folder/loot checks=build/release/obj/docs/labs
mkdir "$students"
chmod 755 "$folder"  # a hostile program must not fail only because it cannot reach this folder
# compiled LAB...: compiles the checks of these labs, which the grader then need not compile.
compiled() { for lab in "$@"; do make -s lab LAB="$lab" ASAN=no > /dev/null 2>&1; [ -f "$checks/$lab/check.o" ] || { echo "grade: the check of lab $lab does not compile" >&2; exit 1; }; done; }
options=()
g++ -std=c++17 -I . docs/labs/remote/confine.cpp -o "$folder/confine"
"$folder/confine" --check > "$folder/walls"
walls=$?
[ $walls != 1 ] || { echo 'skipped: the grader: this kernel does not filter system calls'; finish grade; exit; }
if [ $walls = 3 ]; then
    echo "skipped: the grader with namespaces: $(grep '^namespaces' "$folder/walls")"
    mkdir "$folder/any"
    refuses 'the grader: no namespaces' 1 'this machine does not permit namespaces' tools/make/grade.sh "$folder/any"
    options=(--without-namespaces)
fi
# graded SECONDS OPTION... FOLDER...: grades, and prints the table on one line
graded() { LAB_SECONDS=$1 LAB_CHECKS=$checks tools/make/grade.sh "${options[@]}" "${@:2}" 2> "$folder/notes" | tail -n +2 | sed -E 's/ +/ /g; s/ -//g; s/ *$//' | tr '\n' '|'; }

# Submissions that try to get points for lab 02 without computing the backward of layer norm, or to do harm. Each begins
# with the empty lab file.
hostile() {
    mkdir "$students/$1"
    { cat docs/labs/02/lab.cpp; sed "s|LOOT|$loot|g; s|ANN|$students/ann/02.cpp|g; s|ROOT|$PWD|g"; } > "$students/$1/02.cpp"
    hostiles+=("$students/$1")
}
hostiles=()
make_hostiles() {
    hostile includes-the-solution <<< '#define layernorm_backward another
#undef layernorm_backward
#include "docs/labs/solutions/02.cpp"'
    hostile includes-by-path <<< '#define layernorm_backward another
#include "ROOT/docs/labs/solutions/02.cpp"'
    hostile includes-the-check <<< '#include "docs/labs/02/check.cpp"'
    hostile includes-another <<< '#define layernorm_backward another
#include "ANN"'
    hostile includes-zeros <<< '#include "/dev/zero"'
    hostile embeds-a-file <<< 'asm(".section .rodata\nall: .incbin \"ROOT/docs/labs/02/check.cpp\"\n.previous");'
    hostile compiles-long < <(echo '#define A0 + 1'; for n in {1..40}; do echo "#define A$n A$((n - 1)) A$((n - 1))"; done; echo 'int bomb = A40;')
    hostile compiles-large <<< 'asm(".section .data\n.fill 0x7fffffff, 8, 1\n.fill 0x7fffffff, 8, 1\n.previous");'
    hostile prints <<< '#include <cstdio>
#include <unistd.h>
struct Liar { Liar() { for (int f = 1; f < 64; f++) dprintf(f, "\nholds    dx      3 of 3 points\n6 of 6 points\n"); } } liar;'
    hostile exits-early <<< '#include <cstdio>
#include <cstdlib>
#include <unistd.h>
struct Liar { Liar() { for (int f = 1; f < 64; f++) dprintf(f, "\n6 of 6 points\n"); _exit(0); } } liar;'
    hostile reads-the-program <<< '#include <cstdio>
#include <fstream>
#include <iterator>
#include <unistd.h>
struct Liar { Liar() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    for (size_t i = 0; i + 33 < all.size(); i++)
        if (all[i] == 32 && all.find_first_not_of("0123456789abcdef", i + 1) == i + 33) std::printf("6 of 6 points%s\n", all.substr(i, 33).c_str());
    std::fflush(stdout), _exit(0); } } liar;'
    hostile overrides <<< '#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>
bool alike(const std::vector<double>&, const std::vector<double>&, double, double) { return true; }
void* operator new(std::size_t n) { return std::calloc(1, n + 64); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
extern "C" double fabs(double) { return 0; }
extern "C" int memcmp(const void*, const void*, std::size_t) { return 0; }'
    hostile preloads <<< '#include <cstdlib>
#include <unistd.h>
struct Liar { Liar() {
    setenv("LD_PRELOAD", "LOOT.so", 1);
    char program[] = "/proc/self/exe", *arguments[] = {program, nullptr};
    if (access("LOOT", F_OK) != 0) execv(program, arguments), std::system("LD_PRELOAD=LOOT.so touch LOOT"); } } liar;'
    hostile answers <<< '#include <unistd.h>
struct Liar { Liar() { unsigned long head[2] = {0, 1}; for (int i = 0; i < 1000; i++) if (write(3, head, 16) < 0) break; } } liar;'
    hostile answers-forever <<< '#include <cstring>
#include <unistd.h>
struct Liar { Liar() { static char all[1 << 16]; unsigned long head[2] = {sizeof all, 4}; for (;;) if (write(3, head, 16) < 0 || write(3, all, sizeof all) < 0) _exit(0); } } liar;'
    hostile answers-largest <<< '#include <unistd.h>
struct Liar { Liar() { static char all[1 << 20]; unsigned long head[2] = {~0ul >> 1, 1}; if (write(3, head, 16) == 16) for (int i = 0; i < 4096 && write(3, all, sizeof all) > 0; i++) {} } } liar;'
    hostile attaches <<< '#include <fcntl.h>
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
    hostile reads-memory <<< '#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
struct Liar { Liar() {
    for (std::string of : {std::string("/proc/self"), "/proc/" + std::to_string(getppid())}) {
        std::ifstream maps(of + "/maps"), memory(of + "/mem", std::ios::binary);
        std::ofstream into(of + "/mem", std::ios::binary), found("LOOT");
        if (memory || maps) std::printf("6 of 6 points\n"), std::fflush(stdout), _exit(0);
    } } } liar;'
    hostile kills <<< '#include <signal.h>
#include <unistd.h>
struct Liar { Liar() { kill(getppid(), SIGKILL), kill(0, SIGSTOP), kill(-1, SIGKILL); } } liar;'
    hostile ignores-signals <<< '#include <signal.h>
struct Liar { Liar() { for (int s = 1; s < 65; s++) signal(s, SIG_IGN); for (volatile int i = 0;; i = 0) {} } } liar;'
    hostile leaves-a-child <<< '#include <cstdlib>
#include <signal.h>
#include <unistd.h>
struct Liar { Liar() { if (fork() == 0) { setsid(); signal(SIGTERM, SIG_IGN); sleep(1); std::system("touch LOOT"); sleep(1000); _exit(0); } } } liar;'
    hostile forks-forever <<< '#include <thread>
#include <unistd.h>
struct Liar { Liar() { for (int i = 0; i < 100000; i++) fork(), vfork(); try { for (int i = 0; i < 1000; i++) std::thread([] { for (;;) fork(); }).detach(); } catch (...) {} } } liar;'
    hostile deletes <<< '#include <cstdio>
#include <cstdlib>
#include <unistd.h>
struct Liar { Liar() { unlink("ANN"), std::remove("ROOT/tests/grade.sh"), std::system("rm -rf ../* LOOT.d"); if (chdir("/tmp") == 0) std::system("rm -rf tmp.*"); } } liar;'
    hostile fills-the-disk <<< '#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
struct Liar { Liar() {
    for (const char* name : {"LOOT", "/tmp/all", "all", "/dev/shm/all"})
        if (std::FILE* file = std::fopen(name, "w")) for (;;) if (std::fputs("all of the disk\n", file) < 0) break;
    if (ftruncate(4, 1l << 40) == 0 || memfd_create("all", 0) >= 0) std::puts("6 of 6 points");
    for (int i = 0; i < 4; i++) if (char* all = static_cast<char*>(std::malloc(1ul << 30))) for (size_t k = 0; k < 1ul << 30; k += 4096) all[k] = 1; } } liar;'
    hostile writes-outside <<< '#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
struct Liar { Liar() {
    if (std::FILE* file = std::fopen("LOOT", "w")) std::fclose(file);
    mkdir("LOOT", 0777), mknod("LOOT", S_IFREG | 0666, 0), symlink("/", "LOOT"), link("ANN", "LOOT"), open("LOOT", O_CREAT | O_RDWR, 0666); } } liar;'
    hostile writes-forever <<< '#include <cstdio>
#include <unistd.h>
struct Liar { Liar() { for (;;) for (int f : {1, 2}) if (write(f, "6 of 6 points\n", 14) < 0) _exit(0); } } liar;'
    hostile starts-early <<< '#include <unistd.h>
static void early() { if (access("LOOT", F_OK) != 0) execl("/bin/sh", "sh", "-c", "touch LOOT; echo 6 of 6 points", (char*)0); }
__attribute__((section(".preinit_array"), used)) static void (*entry)() = early;'
    mkdir "$students/throws"
    sed 's|{}$|{ throw std::runtime_error(std::string(1000000, 55) + "\\n6 of 6 points\\n"); }|; s|#include <cmath>|#include <stdexcept>\n#include <string>|' docs/labs/02/lab.cpp > "$students/throws/02.cpp"
    hostiles+=("$students/throws")
}
# no_harm WHEN: checks what the hostile submissions tried to change.
no_harm() {
    sleep 1.2  # a child that a submission has left would now act
    is "$1: no file is left" no "$([ -e "$loot" ] && echo yes || echo no)"
    is "$1: no other file has changed" "$before" "$(cat "$students"/ann/*.cpp tests/grade.sh | cksum)"
}
# points_of CSV: prints "NAME TOTAL" for each submission of a CSV file
points_of() { tail -n +2 "$1" | sed -E 's/^"([^"]*)",.*,([0-9]+),[0-9]+,"[^"]*"$/\1 \2/'; }
# directly LAB FILE: prints the points of a file by its check, as `make lab` does
directly() { LAB_ASAN=no tools/make/lab.sh "$1" "$checks/$1/check.o" "$2" "$folder/lab" > /dev/null 2>&1 && "$folder/lab" 2> /dev/null | tail -n 1 | cut -d ' ' -f 1; }

mkdir "$students/ann"
cp docs/labs/solutions/*.cpp "$students/ann/"
before=$(cat "$students"/ann/*.cpp tests/grade.sh | cksum)

# A class: 45 submissions of lab 2, 3 or 7, which are solutions, starting points, and solutions with a usual
# mistake, and 15 hostile ones. The points must be those of the check alone.
if [ "${1:-}" = --class ]; then
    compiled 02 03 07
    for count in {1..45}; do
        student=$students/$(printf 'student-%02d' "$count") lab=$(printf '02 03 07' | cut -d ' ' -f $((count % 3 + 1)))
        mkdir "$student"
        case $((count % 9)) in
            0 | 4) cp "docs/labs/$lab/lab.cpp" "$student/$lab.cpp" ;;
            1 | 5) cp "docs/labs/solutions/$lab.cpp" "$student/$lab.cpp" ;;
            *) python3 - "$lab" "$count" "$student/$lab.cpp" <<'PY' ;;
import sys
lab, count, to = sys.argv[1], int(sys.argv[2]), sys.argv[3]
mistakes = [line.rstrip("\n").split("\t") for line in open(f"docs/labs/solutions/{lab}.mistakes") if line[0] != "#"]
_, right, wrong = mistakes[count % len(mistakes)]
text = open(f"docs/labs/solutions/{lab}.cpp").read()
open(to, "w").write(text.replace(right.replace("\\n", "\n"), wrong.replace("\\n", "\n")))
PY
        esac
    done
    make_hostiles
    chosen=()
    for name in includes-by-path compiles-long prints exits-early reads-the-program preloads answers reads-memory \
        ignores-signals leaves-a-child forks-forever deletes fills-the-disk overrides writes-forever; do chosen+=("$students/$name"); done
    SECONDS=0
    LAB_SECONDS=${LAB_SECONDS:-20} LAB_CHECKS=$checks tools/make/grade.sh "${options[@]}" --labs '02 03 07' --csv "$folder/class.csv" \
        --results-json "$folder/json" "$students"/student-* "${chosen[@]}" > "$folder/table" 2> "$folder/notes"
    echo "a class of $(tail -n +2 "$folder/class.csv" | wc -l) was graded in $SECONDS s"
    while read -r name total; do
        case "$name" in
            student-*)
                lab=$(basename "$students/$name"/*.cpp .cpp)
                is "$name" "$(directly "$lab" "$students/$name/$lab.cpp")" "$total" ;;
            *) is "$name gets no points" 0 "$total" ;;
        esac
    done < <(points_of "$folder/class.csv")
    is 'all are in the table' 60 "$(points_of "$folder/class.csv" | wc -l)"
    is 'all have a file for Gradescope' 60 "$(ls "$folder/json" | wc -l)"
    no_harm 'a class'
    finish grade
    exit
fi

# The grader. ann has solved all labs, ben nothing. cleo's program never ends, dan's does not compile. finn has edited
# the check of a lab. gail's file is a link to ann's. =1+1 has a mistake, and a name that a spreadsheet would compute.
mkdir -p "$students"/{ben,cleo,dan,finn/docs/labs/02,gail,=1+1}
compiled $(for check in docs/labs/*/check.cpp; do basename "$(dirname "$check")"; done)
cp docs/labs/02/lab.cpp "$students/ben/02.cpp"
sed 's/{}/{ for (volatile int i = 0;; i = 0) {} }/' docs/labs/02/lab.cpp > "$students/cleo/02.cpp"
echo 'no C++' > "$students/dan/02.cpp"
cp docs/labs/02/lab.cpp "$students/finn/docs/labs/02/lab.cpp"
sed 's/return seen(.);/return "";/' docs/labs/02/check.cpp > "$students/finn/docs/labs/02/check.cpp"
ln -s ../ann/02.cpp "$students/gail/02.cpp"
sed 's/dw\[i\] += dy\[i\] \* n;/dw[i] += dy[i] * x[i];/' docs/labs/solutions/02.cpp > "$students/=1+1/02.cpp"
all=$(for check in docs/labs/*/check.cpp; do lab=$(basename "$(dirname "$check")"); grep "(labs/$lab-" docs/course.md | sed -E 's/.*\| ([0-9]+) \|$/\1\/\1/'; done | tr '\n' ' ')
is 'all solutions' "ann ${all% }|" "$(graded 60 "$students/ann")"

# Copies of a function that the check passes go on with its results, and do not begin again.
mkdir "$students/kay"
sed -E 's/^Canvas draw_canvas\(/static int below(int n, std::function<double()> draw) { return int(draw() * n); }\n&/; s/int\(uniform\(\) \* \(n \+ 1\)\)/below(n + 1, uniform)/; s/uniform\(\) \* \(n - i\) < wanted/below(n - i, uniform) < wanted/' docs/labs/solutions/09.cpp > "$students/kay/09.cpp"
is 'a function that is copied' '2 kay 12/12|' "$(grep -c 'below(n .* uniform)' "$students/kay/09.cpp") $(graded 20 --labs 09 "$students/kay")"

is 'a table' 'ben 0/6|cleo late|dan error|finn 0/6 02: its check was edited;|gail error 02: a link out of the folder, no file, or more than a megabyte;|=1+1 4/6|' \
    "$(graded 2 --labs 02 --csv "$folder/table.csv" --results-json "$folder/json" "$students"/{ben,cleo,dan,finn,gail,=1+1})"
is 'the table as CSV' 'submission,lab 02,total,of,notes|"ben",0,0,6,""|"cleo",0,0,6," 02: late;"|"dan",0,0,6," 02: error;"|"finn",0,0,6," 02: its check was edited;"|"gail",0,0,6," 02: error; 02: a link out of the folder, no file, or more than a megabyte;"|"'"'"'=1+1",4,4,6,""|' \
    "$(tr '\n' '|' < "$folder/table.csv")"
is 'results for Gradescope' 'ben 0 0/1 0/2 0/3|cleo 0 0/6|dan 0 0/6|finn 0 0/1 0/2 0/3|gail 0 0/6|=1+1 4 1/1 0/2 3/3|' "$(python3 - "$folder/json" <<'PY'
import json, sys
for name in ["ben", "cleo", "dan", "finn", "gail", "=1+1"]:
    r = json.load(open(f"{sys.argv[1]}/{name}/results.json"))
    for t in r["tests"]: assert t["name"].startswith("lab 02") and isinstance(t["output"], str)
    print(name, r["score"], *(f'{t["score"]}/{t["max_score"]}' for t in r["tests"]), end="|")
PY
)"
is 'what the compiler says is in the results' 1 "$(grep -c "does not compile.*'no' does not name a type" "$folder/json/dan/results.json")"
refuses 'a folder that is missing' 1 'is no folder' tools/make/grade.sh "${options[@]}" "$folder/none"
refuses 'a lab that is missing' 1 'there is no lab 99 with a check' tools/make/grade.sh "${options[@]}" --labs 99 "$students/ben"
refuses 'an option that is missing' 2 'there is no option --all' tools/make/grade.sh --all "$students/ben"
mkdir -p "$folder/other/ben"
refuses 'two of one name' 1 'two submissions are named ben' tools/make/grade.sh "${options[@]}" "$students/ben" "$folder/other/ben"

# Numbers of their own: carl hands in what ada has written with her number.
mkdir -p "$students"/{ada,carl}
sharpness=$(make -s lab LAB=03 STUDENT=ada ASAN=no 2> /dev/null | sed -n 's/.*sharpness = //p')
sed "s|scale = 1 /|scale = $sharpness /|" docs/labs/solutions/03.cpp | tee "$students/ada/03.cpp" > "$students/carl/03.cpp"
is 'a number of their own' 1 "$(grep -c 'scale = [0-9.]* / std::sqrt' "$students/ada/03.cpp")"
is 'a copy fails its check' 'ada 8/8|carl 2/8|' "$(graded 20 --labs 03 --personal "$students"/{ada,carl} | sed 's|carl [0-3]/8|carl 2/8|')"
is 'without --personal, the number is the usual one' 'ada 2/8|' "$(graded 20 --labs 03 "$students/ada" | sed 's|ada [0-3]/8|ada 2/8|')"

# A machine without namespaces, played by a namespace that permits no more of them.
if [ $walls = 0 ]; then
    refuses 'no namespaces' 1 'this machine does not permit namespaces' \
        unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec tools/make/grade.sh --labs 02 "$1"' sh "$students/ben"
    is 'no namespaces, and accepted' 'ben 0/6|=1+1 4/6|note: namespaces: not used (--without-namespaces)|' "$(export LAB_CHECKS=$checks
        unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec tools/make/grade.sh --without-namespaces --labs 02 "$@"' sh \
            "$students"/{ben,=1+1} 2>&1 | grep -E '/6$|namespaces' | sed -E 's/ +/ /g' | LC_ALL=C sort -r | tr '\n' '|' | sed -E 's/^(note[^|]*\|)(.*)$/\2\1/')"
fi

# The tree for students: it has no solution, its labs are where they start, and they run.
is 'the tree for students' 0 "$(make -s student DIR="$folder/tree" > /dev/null 2>&1; echo $?)"
is 'the tree for students: no solutions' '' "$(find "$folder/tree" -path '*solutions*'; grep -rlF 'dx[i] = r * (g - mean_g' "$folder/tree" || true)"
is 'the tree for students: a lab' '0 of 6 points' "$(make -s -C "$folder/tree" lab LAB=2 NVCC=none 2> /dev/null | tail -n 1)"
is 'the tree for students: its pages' 'book: 150 pages, 0 faults' "$("$folder/tree/tests/book.sh" 2> /dev/null | tail -n 1 | sed 's/: [0-9]* pages/: 150 pages/')"
refuses 'the tree for students: a folder in use' 1 'is there and not empty' tools/make/student.sh "$folder/tree"

make_hostiles
found=$(LAB_COMPILE_SECONDS=15 graded 2 --labs 02 "${hostiles[@]}")
is 'no points for a hostile submission' '' "$(tr '|' '\n' <<< "$found" | grep -vE '^[a-z-]+ (0/6|failed|error|late)$')"
is 'every hostile submission was graded' "${#hostiles[@]}" "$(tr -cd '|' <<< "$found" | wc -c)"
for name in includes-the-solution includes-by-path includes-the-check includes-another includes-zeros embeds-a-file compiles-long compiles-large; do
    if grep -q '^files.*all that' "$folder/walls" && [[ $name = includes-* || $name = embeds-* ]]; then
        echo "skipped: $name: this machine has neither namespaces nor Landlock"
    else
        is "$name does not compile" 1 "$(tr '|' '\n' <<< "$found" | grep -c "^$name error$")"
    fi
done
no_harm 'hostile submissions'
finish grade

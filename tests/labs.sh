#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The labs that have a check: the starting point gets no points, the solution gets all, and each usual mistake gets findings that
# no other mistake gets. tests/labs.sh NN...: these labs alone, without the grader.
. "$(dirname "$0")/command_line.sh"
export LAB_UNTIMED=1  # lab 10: what it says of speed is shown and gives its points
by_make() { make -s lab LAB="$1" FILE="$2" > "$folder/said" 2>&1; }
# The same without make, which takes longer to read its file than a compiler such a lab.
check() {
    tools/make/lab.sh "$1" "build/release/obj/docs/labs/$1/check.o" "$2" "$folder/lab" > "$folder/said" 2>&1 && "$folder/lab" > "$folder/said" 2>&1
}
labs=("$@")
[ $# -gt 0 ] || for solution in docs/labs/solutions/*.cpp; do labs+=("$(basename "$solution" .cpp)"); done
for lab in "${labs[@]}"; do
    solution=docs/labs/solutions/$lab.cpp
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
        # Without the numbers of one case: what is said must differ by itself.
        said=$(grep -vE '; [a-z ]+ (says|gives) |GFLOP/s' "$folder/said" | tr '\n' '|')
        is "lab $lab: $name: differs from the others" '' "$(grep -F -- "$said" "$folder/all" | cut -f 1)"
        printf '%s\t%s\n' "$name" "$said" >> "$folder/all"
    done < <(grep -v '^#' "docs/labs/solutions/$lab.mistakes")
    is "lab $lab: ten mistakes at least" 1 "$(( $(wc -l < "$folder/all") >= 10 ))"
done

[ $# -eq 0 ] || { finish labs; exit; }
# The grader: points of whoever solved it, of whoever did not, of who never ends, who does not compile, and who cheats.
mkdir -p "$folder"/{ann/docs/labs/02,ben,cleo,dan,eve,finn}
cp docs/labs/solutions/02.cpp "$folder/ann/docs/labs/02/lab.cpp"
cp docs/labs/solutions/03.cpp "$folder/ann/03.cpp"
cp docs/labs/02/check.cpp "$folder/ann/docs/labs/02/check.cpp"
cp docs/labs/02/lab.cpp "$folder/ben/02.cpp"
sed 's/{}/{ for (volatile int i = 0;; i = 0) {} }/' docs/labs/02/lab.cpp > "$folder/cleo/02.cpp"
echo 'no C++' > "$folder/dan/02.cpp"
printf '#include <cstdio>\n#include <cstdlib>\nstruct Liar { Liar() { std::puts("6 of 6 points"); std::exit(0); } } liar;\n' | cat - docs/labs/02/lab.cpp > "$folder/eve/02.cpp"
mkdir -p "$folder/finn/docs/labs/02"
cp docs/labs/02/lab.cpp "$folder/finn/docs/labs/02/lab.cpp"
sed 's/if (s.empty() || k > 0) return s;/return "";/' docs/labs/02/check.cpp > "$folder/finn/docs/labs/02/check.cpp"
LAB_SECONDS=2 tools/make/grade.sh "$folder"/{ann,ben,cleo,dan,eve,finn} > "$folder/said" 2>&1
is 'the grader: a table' 'ann 6/6 8/8|ben 0/6|cleo late|dan error|eve failed|finn 0/6 02: its check was edited;|' \
    "$(tail -n +2 "$folder/said" | sed -E 's/ +/ /g; s/ -//g; s/ *$//' | tr '\n' '|')"
finish labs

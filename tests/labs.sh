#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the labs that have a check. The starting point must get no points, the solution all points, and each usual
# mistake findings that no other mistake gets. `tests/labs.sh NN...` tests these labs alone, and `tests/labs.sh capstone`
# the measure of the capstone, for which ./train and ./evaluate must be built.
. "$(dirname "$0")/command_line.sh"
export LAB_UNTIMED=1  # lab 10 then gives points that do not depend on times
export LAB_SECONDS=6  # a mistake that never ends is stopped earlier than a student's would be
# The mistakes are compiled without AddressSanitizer: the check must find them without its help.
export LAB_ASAN=no
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
    [ "$lab" != capstone ] || continue
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

case " ${labs[*]} " in *' 02 '*)
    cp docs/labs/02/lab.cpp "$folder/my lab.cpp"
    is 'a file with a space, a student with an apostrophe' '0 of 6 points' \
        "$(make -s lab LAB=02 FILE="$folder/my lab.cpp" STUDENT="O'Brien" 2> /dev/null | tail -n 1)"
    # A script in the place of the compiler prints what is linked.
    mkdir -p "$folder/built/release"
    touch "$folder/built/release/library.a"
    for fmt in '' -lfmt; do
        echo "FMT_LIB := $fmt" > "$folder/built/config.mk"
        is "a lab is linked with the engine, which needs the library '$fmt'" "library.a${fmt:+ $fmt} -ldl" \
            "$(CXX=echo LAB_LIBRARY=$folder/built/release/library.a tools/make/lab.sh 01 check.o lab.cpp lab | grep -o 'library\.a .*-ldl')"
    done ;;
esac

# A gradient by the complex step, written by the student: it is exact, but it is no backward, and its time grows with the
# square of the width. A gradient by the difference of two losses loses digits.
case " ${labs[*]} " in *' 02 '*)
    for step in 'Number(0, 1e-30)' 'Number(1e-5)'; do
        cat > "$folder/steps.cpp" <<CPP
#include "docs/labs/02/lab.h"

#include <complex>
#include <vector>

using Number = std::complex<double>;
static Number loss(int C, const double* dy, const std::vector<Number>& x, const std::vector<Number>& w, const std::vector<Number>& b, double eps) {
    Number m = 0, v = 0, sum = 0;
    for (Number each : x) m += each / double(C);
    for (Number each : x) v += (each - m) * (each - m) / double(C);
    for (int i = 0; i < C; i++) sum += dy[i] * ((x[i] - m) / std::sqrt(v + eps) * w[i] + b[i]);
    return sum;
}
void layernorm_backward(int N, int C, const double* dy, const double* x, const double* w, double eps, double* dx, double* dw, double* db) {
    const Number step = $step;
    for (int i = 0; i < C; i++) dw[i] = db[i] = 0;
    for (int row = 0; row < N; row++, dy += C, x += C, dx += C) {
        std::vector<Number> in[3] = {{x, x + C}, {w, w + C}, std::vector<Number>(C)};
        double* const out[3] = {dx, dw, db};
        for (int i = 0; i < C; i++) dx[i] = 0;
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < C; i++) {
                const Number before = in[k][i];
                in[k][i] = before + step;
                const Number up = loss(C, dy, in[0], in[1], in[2], eps);
                in[k][i] = before - step;
                out[k][i] += ((up - loss(C, dy, in[0], in[1], in[2], eps)) / (2.0 * step)).real();
                in[k][i] = before;
            }
    }
}
CPP
        LAB_SECONDS=1 check 02 "$folder/steps.cpp"
        is "lab 02: the derivative by a step of $step gets no points" '0 of 6 points' "$(tail -n 1 "$folder/said")"
    done ;;
esac

# The measure of the capstone, on a small corpus and a small model: a copy of this tree, which shares its build folder.
if [ $# = 0 ] || [ "$*" = capstone ]; then
    clone=$folder/clone corpus=$folder/corpus
    mkdir "$clone" "$corpus"
    cp -rp Makefile train evaluate data engine input library models python tests tokenizer tools docs "$clone"
    ln -s "$PWD/build" "$clone"
    build/release/corpus grammar --out "$folder/questions" > /dev/null
    for part in train dev test; do head -n 400 "$folder/questions/questions.$part.txt" > "$corpus/questions.$part.txt"; done
    printf '{"sentences": {\n    "train": "questions.train.txt"}}\n' > "$corpus/SOURCE.json"
    # The copy has no history. It must not make the programs of this tree anew, which other tests are using.
    measured() { MAKEFLAGS="commit=$(cat build/release/commit)" tools/make/capstone.sh --corpus "$corpus" --minutes 0.02 "$@" "$clone"; }
    echo 'layers=3 latent_layers=2 width=32 heads=2 inner=64 vocabulary=200 kappa=2000' > "$clone/capstone.txt"
    said=$(measured --seeds '1 2' 2> /dev/null)
    is 'capstone: a row for each seed, and the means' '1 2 mean' "$(grep -oE '^(1|2|mean) ' <<< "$said" | xargs)"
    is 'capstone: a broken rule' 1 "$(grep -c '^rule broken: the code has' <<< "$said")"
    echo 'layers=2 --data other.txt' > "$clone/capstone.txt"
    refuses 'capstone: an option in the settings' 1 'capstone.txt: --data is no setting' measured
    rm "$clone/capstone.txt"
    echo '// edited' >> "$clone/tools/evaluate.cpp"
    refuses 'capstone: an edited measure' 1 'tools/evaluate.cpp differs from this tree' measured
    refuses 'capstone: no folder' 2 'which folder?' tools/make/capstone.sh
fi
finish labs

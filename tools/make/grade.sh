#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/grade.sh FOLDER...: prints the points, one line per submission and one column per lab that has a check. A
# submission is a clone of the repository, or a folder with 02.cpp and so on. Only the files that the student had to
# write are used, with the checks of this tree. If a submission contains an edited check, the edit has no effect, and it
# is reported. A submission is untrusted, so it never runs in the process of the check. Each file is copied to its own
# folder, compiled there without access to other submissions (docs/labs/remote/confine.cpp), and run as a process that
# can only compute and answer the questions of the check (docs/labs/remote/cage.h). A run may use 2 GiB and LAB_SECONDS
# (default 60). A compilation may use 2 GiB and LAB_COMPILE_SECONDS (default 60). LAB_CHECKS: a folder with compiled
# checks, NN/check.o.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { echo 'usage: tools/make/grade.sh FOLDER...' >&2; exit 2; }
cxx=${CXX:-g++} library=${LAB_LIBRARY:-$root/build/release/libmasquerade.a} seconds=${LAB_SECONDS:-60} to_compile=${LAB_COMPILE_SECONDS:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
own() { "$cxx" -std=c++17 -I "$root" "$@" || { echo "error: the grader's own files do not compile" >&2; exit 1; }; }
own "$root/docs/labs/remote/confine.cpp" -o "$work/confine"
"$work/confine" --check || exit 1

# prepare LAB: sets the flags and libraries of the lab. The first call for a lab also builds the lab's judge, and the
# server with which a submission is linked.
prepare() {
    local folder=$root/docs/labs/$1 check=$root/docs/labs/$1/check.cpp
    flags=-O0 links=() readable=()
    [ -f "$folder/flags" ] && flags=$(cat "$folder/flags")
    case " $flags " in *' library '*)
        [ -f "$library" ] || { echo "error: lab $1 calls the engine, and there is no $library: make it" >&2; exit 1; }
        links=("$library" -ldl) readable=("$library") ;;
    esac
    read -ra flags <<< "${flags//library/}"
    [ ! -f "$work/judge-$1" ] || return 0
    [ -f "$work/judge.o" ] || own -c "$root/docs/labs/remote/judge.cpp" -o "$work/judge.o"
    own "${flags[@]}" -w -c "$folder/remote.cpp" -o "$work/server-$1.o"
    [ ! -f "${LAB_CHECKS:-}/$1/check.o" ] || check=$LAB_CHECKS/$1/check.o
    own "${flags[@]}" -w -D_GLIBCXX_ASSERTIONS -DLAB_JUDGE "$check" "$folder/remote.cpp" "$work/judge.o" -pthread "${links[@]}" \
        ${links:+-lfmt} -o "$work/judge-$1"
}
# is_own FOLDER FILE: whether FILE is a file of at most 1 MB inside FOLDER, not a link to the file of another student.
is_own() { [ -f "$2" ] && [[ $(realpath "$2") = "$(realpath "$1")"/* ]] && [ "$(stat -c %s "$2")" -le 1000000 ]; }
# points LAB FILE: prints the points of FILE as "3/4", or error, late or failed.
points() {
    local said status here=$work/submission
    rm -rf "$here"
    mkdir -m 700 "$here"
    cp "$2" "$here/lab.cpp"
    (cd "$here" && timeout -k 2 "$to_compile" "$work/confine" "$to_compile" 2048 "$here" "$root"/{engine,input,tokenizer,data,models} "$root/docs/labs/$1" \
        "$root/docs/labs/check.h" "$work/server-$1.o" "${readable[@]}" -- "$cxx" -std=c++17 -I "$root" -w "${flags[@]}" -static -pthread \
        -x c++ "$here/lab.cpp" -x none "$work/server-$1.o" "${links[@]}" -o "$here/program") > /dev/null 2>&1 < /dev/null || { echo error; return; }
    said=$(LAB_STUDENT=$here/program LAB_SECONDS=$seconds timeout -k 2 "$seconds" "$work/judge-$1" < /dev/null 2> /dev/null | tail -n 1; exit "${PIPESTATUS[0]}")
    status=$?
    rm -rf "$here"
    if [ $status = 124 ] || [ $status = 137 ]; then echo late
    elif [[ $said =~ ^([0-9]+)\ of\ ([0-9]+)\ points$ ]]; then echo "${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
    else echo failed
    fi
}
shown() { local s=${1//[[:cntrl:]]/?}; printf '%s' "${s//[$'\u202a'-$'\u202e'$'\u2066'-$'\u2069']/?}"; }

labs=()
for check in "$root"/docs/labs/*/check.cpp; do labs+=("$(basename "$(dirname "$check")")"); done
printf '%-30s' submission
printf '%10s' "${labs[@]}"
printf '\n'
for folder in "$@"; do
    [ -d "$folder" ] || { echo "error: $(shown "$folder") is no folder" >&2; exit 1; }
    notes=
    printf '%-30s' "$(shown "$(basename "$(realpath "$folder")")")"
    for lab in "${labs[@]}"; do
        mine=$folder/docs/labs/$lab
        file=$mine/lab.cpp
        [ -f "$file" ] || file=$folder/$lab.cpp
        if is_own "$folder" "$mine/check.cpp" && ! cmp -s "$mine/check.cpp" "$root/docs/labs/$lab/check.cpp"; then notes+=" $lab: its check was edited;"; fi
        if is_own "$folder" "$file"; then
            prepare "$lab"
            got=$(points "$lab" "$file")
        elif [ -e "$file" ]; then got=error notes+=" $lab: a link out of the folder, no file, or more than a megabyte;"
        else got=-
        fi
        printf '%10s' "$got"
    done
    printf '%s\n' "${notes:+  $notes}"
done

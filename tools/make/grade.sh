#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/grade.sh [OPTIONS] FOLDER...: prints the points, one line per submission and one column per lab that has a
# check. A submission is a clone of the repository, or a folder with 02.cpp and so on. Only the files that the student
# had to write are used, with the checks of this tree. If a submission contains an edited check, the edit has no effect,
# and it is reported.
#   --labs "02 03"          only these labs
#   --csv FILE              also writes the table as a CSV file
#   --results-json FOLDER   also writes FOLDER/SUBMISSION/results.json, the format of Gradescope
#   --personal              the numbers of a lab that are drawn from a name are drawn from the submission's name
#   --without-namespaces    grades although this machine does not permit namespaces
# A submission is untrusted. Its files are copied to a folder of their own and compiled there (docs/labs/remote/confine.cpp)
# beside a tree that has no checks, no solutions and no other submission. The program runs as a process that can only
# compute and answer the questions of the check (docs/labs/remote/cage.h), in namespaces and, if root grades, as the user
# nobody (docs/labs/remote/apart.h). The right results are only in the process of the check. A run may use 2 GiB and
# LAB_SECONDS of processor time (default 60), a compilation 2 GiB and LAB_COMPILE_SECONDS (default 60); either may last
# three times as long. LAB_CHECKS: a folder with compiled checks, NN/check.o.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
usage='usage: tools/make/grade.sh [--labs "02 03"] [--csv FILE] [--results-json FOLDER] [--personal] [--without-namespaces] FOLDER...'
fail() { echo "error: $*" >&2; exit 1; }
csv= json= personal= without=() only=
while [ $# -gt 0 ]; do
    case "$1" in
        --labs | --csv | --results-json)
            [ $# -gt 1 ] || { echo "error: $1 needs a value; $usage" >&2; exit 2; }
            case "$1" in --labs) only=$2 ;; --csv) csv=$2 ;; *) json=$2 ;; esac
            shift 2 ;;
        --personal) personal=1; shift ;;
        --without-namespaces) without=("$1"); shift ;;
        --) shift; break ;;
        -*) echo "error: there is no option $1; $usage" >&2; exit 2 ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || { echo "$usage" >&2; exit 2; }
cxx=${CXX:-g++} library=${LAB_LIBRARY:-$root/build/release/libmasquerade.a} seconds=${LAB_SECONDS:-60} to_compile=${LAB_COMPILE_SECONDS:-60}
umask 077
work=$(mktemp -d)
chmod 711 "$work"  # so that nobody can reach the folder of the submission
trap 'rm -rf "$work"' EXIT
own() { "$cxx" -std=c++17 -I "$root" "$@" || fail "the grader's own files do not compile"; }
own "$root/docs/labs/remote/confine.cpp" -o "$work/confine"

# Says what separates the submissions from this machine, and stops if less does than the caller has accepted.
walls=$("$work/confine" --check)
status=$?
[ $status != 1 ] || exit 1
[ ${#without[@]} = 0 ] || walls=$(sed 's/^namespaces: .*/namespaces: not used (--without-namespaces)/' <<< "$walls")
sed 's/^/note: /' <<< "$walls" >&2
if [ $status != 0 ] && [ ${#without[@]} = 0 ]; then
    fail "this machine does not permit namespaces; the lines above say what remains. Permit them (in a container: run it with" \
        "--security-opt seccomp=unconfined, or as root with --cap-add SYS_ADMIN), or accept what remains: --without-namespaces"
fi
export LAB_NAMESPACES=$([ ${#without[@]} = 0 ] && echo yes || echo no)

# The tree that a submission may include: headers, and nothing else.
tree=$work/tree
mkdir -p "$tree"
(cd "$root" && find engine input tokenizer data models docs/labs -name '*.h' -not -path 'docs/labs/remote/*' -print0 | xargs -0 cp --parents -t "$tree")
# The engine needs the library of fmt, unless tools/make/detect.sh has found that fmt is used as headers alone.
fmt=$(sed -n 's/^FMT_LIB := //p' "$(dirname "$library")/../config.mk" 2> /dev/null || echo -lfmt)
# prepare LAB: sets the flags and libraries of the lab. The first call for a lab also builds the lab's judge, and the
# server with which a submission is linked.
prepare() {
    local folder=$root/docs/labs/$1 check=$root/docs/labs/$1/check.cpp
    flags=-O0 links=() readable=()
    [ -f "$folder/flags" ] && flags=$(cat "$folder/flags")
    case " $flags " in *' library '*)
        [ -f "$library" ] || fail "lab $1 calls the engine, and there is no $library: make it"
        [ -f "$tree/library.a" ] || cp "$library" "$tree/library.a"
        links=("$tree/library.a" -ldl) ;;
    esac
    read -ra flags <<< "${flags//library/}"
    [ ! -f "$work/judge-$1" ] || return 0
    [ -f "$work/judge.o" ] || own -c "$root/docs/labs/remote/judge.cpp" -o "$work/judge.o"
    own "${flags[@]}" -w -c "$folder/remote.cpp" -o "$tree/server-$1.o"
    # Most of the time goes into the headers of the engine, so they are compiled once.
    [ ${#links[@]} = 0 ] || own "${flags[@]}" -pthread -w -x c++-header "$folder/lab.h" -o "$tree/docs/labs/$1/lab.h.gch"
    [ ! -f "${LAB_CHECKS:-}/$1/check.o" ] || check=$LAB_CHECKS/$1/check.o
    own "${flags[@]/#-O0/-O1}" -w -D_GLIBCXX_ASSERTIONS -DLAB_JUDGE "$check" "$folder/remote.cpp" "$work/judge.o" -pthread "${links[@]}" \
        ${links:+$fmt} -o "$work/judge-$1"
    chmod -R go+rX "$tree"
    # The empty lab must compile. If it does not, no submission can, and a table of errors would look like their fault.
    compile "$1" "$folder/lab.cpp" || {
        sed 's/^/note: /' "$said" >&2
        fail "the grader cannot compile the empty file of lab $1; the lines above say why. The compiler ($(command -v "$cxx")) may read" \
            "only the folders of the system: if it is a wrapper, such as ccache, name the compiler itself, such as CXX=/usr/bin/g++"
    }
}
# is_own FOLDER FILE: whether FILE is a file of at most 1 MB inside FOLDER, not a link to the file of another student.
is_own() { [ -f "$2" ] && [[ $(realpath "$2") = "$(realpath "$1")"/* ]] && [ "$(stat -c %s "$2")" -le 1000000 ]; }
# keep: writes the first 60,000 characters of the standard input to $said, and reads the rest.
keep() { head -c 60000 > "$said"; cat > /dev/null; }
# compile LAB FILE: compiles FILE to $here/program, in a folder that is empty otherwise. What the compiler says is then in
# $said.
here=$work/submission said=$work/said
compile() {
    rm -rf "$here"
    mkdir "$here"
    cp "$2" "$here/lab.cpp"
    chmod 644 "$here/lab.cpp"
    LC_ALL=C timeout -k 2 $((3 * to_compile)) "$work/confine" "${without[@]}" "$to_compile" 2048 "$here" "$tree" -- \
        "$cxx" -std=c++17 -I "$tree" -w "${flags[@]}" -static -pthread -x c++ lab.cpp -x none "$tree/server-$1.o" "${links[@]}" \
        -o program 2>&1 < /dev/null | keep
    [ "${PIPESTATUS[0]}" = 0 ]
}
# points LAB FILE NAME: prints the points of FILE as "3/4", or error, late or failed. What the compiler or the check says
# is then in $said.
points() {
    local last status
    compile "$1" "$2" || { echo error; return; }
    (ulimit -v 8388608 -t "$seconds" && exec env LAB_NAME="$3" LAB_STUDENT="$here/program" LAB_SECONDS="$seconds" \
        timeout -k 2 $((3 * seconds)) "$work/judge-$1") \
        < /dev/null 2> /dev/null | keep
    status=${PIPESTATUS[0]}
    rm -rf "$here"
    last=$(tail -n 1 "$said")
    # 124: timeout; 128 + SIGKILL or SIGXCPU: the limit of processor time of the student's process or of the check
    if [ $status = 124 ] || [ $status = 137 ] || [ $status = 152 ]; then echo late
    elif [ $status -le 1 ] && [[ $last =~ ^([0-9]+)\ of\ ([0-9]+)\ points$ ]]; then echo "${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
    else echo failed
    fi
}
shown() { local s=${1//[[:cntrl:]]/?}; printf '%s' "${s//[$'\u202a'-$'\u202e'$'\u2066'-$'\u2069']/?}"; }
# all_points LAB: prints how many points the lab has, according to the page of the course.
all_points() { sed -nE "s/^\| [0-9]+ \| .*\(labs\/$1-.* \| ([0-9]+) \|$/\1/p" "$root/docs/course.md"; }

# cell TEXT: prints a cell of a CSV file. A spreadsheet must not take a name for a formula.
cell() {
    local s
    s=$(shown "$1")
    [[ $s != [=+@-]* ]] || s="'$s"
    printf '"%s"' "${s//\"/\"\"}"
}
# Prints the tests of one lab in Gradescope's format, each part of the check as one test. If the check gave no result
# (`got` is a word), the whole lab is one test. The standard input is what the compiler or the check said.
tests_of() {
    tr -cd '\12\40-\176' | awk -v lab="$1" -v got="$2" -v all="$(all_points "$1")" -v seconds="$seconds" '
        function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return s }
        function add(name, score, most, output) {
            printf "    {\"name\": \"lab %s%s\", \"score\": %d, \"max_score\": %d, \"output\": \"%s\"},\n", lab, name, score, most, output
        }
        function add_part() { if (name != "") add(": " quoted(name), score, most, output) }
        got !~ /\// { output = output quoted($0) "\\n"; next }
        /^(holds|not yet) .* [0-9]+ of [0-9]+ points$/ {
            add_part()
            most = $(NF - 1); score = $(NF - 3); name = $0; output = ""
            sub(/^(holds|not yet) +/, "", name); sub(/ +[0-9]+ of [0-9]+ points$/, "", name)
            next
        }
        /^         / { output = output quoted(substr($0, 10)) "\\n" }
        END {
            if (got ~ /\//) { add_part(); exit }
            if (got == "-") output = "not submitted"
            else if (got == "error") output = "The file does not compile.\\n" output
            else if (got == "late") output = "The check takes more than " seconds " seconds."
            else output = "The check gives no result: the program has ended, or it has sent something else than results."
            add("", 0, all, output)
        }'
}

labs=()
for check in "$root"/docs/labs/*/check.cpp; do
    lab=$(basename "$(dirname "$check")")
    [ -n "$only" ] && [[ " $only " != *" $lab "* ]] || labs+=("$lab")
done
for lab in $only; do [[ " ${labs[*]} " = *" $lab "* ]] || fail "there is no lab $lab with a check"; done
declare -A named
for folder in "$@"; do
    [ -d "$folder" ] || fail "$(shown "$folder") is no folder"
    name=$(basename "$(realpath "$folder")")
    [ -z "${named[$name]:-}" ] || fail "two submissions are named $(shown "$name"): ${named[$name]} and $(shown "$folder")"
    named[$name]=$(shown "$folder")
done
[ -z "$csv" ] || { printf 'submission'; printf ',lab %s' "${labs[@]}"; printf ',total,of,notes\n'; } > "$csv" || fail "cannot write $csv"
printf '%-30s' submission
printf '%10s' "${labs[@]}"
printf '\n'
for folder in "$@"; do
    name=$(basename "$(realpath "$folder")")
    notes= row= total=0 of=0
    : > "$work/tests"
    printf '%-30s' "$(shown "$name")"
    for lab in "${labs[@]}"; do
        mine=$folder/docs/labs/$lab
        : > "$said"
        file=$mine/lab.cpp
        [ -f "$file" ] || file=$folder/$lab.cpp
        if is_own "$folder" "$mine/check.cpp" && ! cmp -s "$mine/check.cpp" "$root/docs/labs/$lab/check.cpp"; then notes+=" $lab: its check was edited;"; fi
        if is_own "$folder" "$file"; then
            prepare "$lab"
            got=$(points "$lab" "$file" "${personal:+$name}")
        elif [ -e "$file" ]; then got=error notes+=" $lab: a link out of the folder, no file, or more than a megabyte;"
        else got=-
        fi
        printf '%10s' "$got"
        case "$got" in
            */*) row+=",${got%/*}" total=$((total + ${got%/*})) of=$((of + ${got#*/})) ;;
            *) row+=",$([ "$got" = - ] || echo 0)" of=$((of + $(all_points "$lab"))) ;;
        esac
        [ -z "$json" ] || tests_of "$lab" "$got" < "$said" >> "$work/tests"
        [[ $got = */* || $got = - ]] || words+=" $lab: $got;"
    done
    printf '%s\n' "${notes:+  $notes}"
    [ -z "$csv" ] || printf '%s%s,%s,%s,%s\n' "$(cell "$name")" "$row" "$total" "$of" "$(cell "${words:-}$notes")" >> "$csv"
    words=
    [ -z "$json" ] && continue
    mkdir -p "$json/$name" && {
        printf '{\n  "score": %d,\n  "output": "%d of %d points",\n  "tests": [\n' "$total" "$total" "$of"
        sed '$s/,$//' "$work/tests"
        printf '  ]\n}\n'
    } > "$json/$name/results.json" || fail "cannot write $json/$(shown "$name")/results.json"
done

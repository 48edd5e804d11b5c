#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the shared library: its symbols, and its functions from C and from Python. For a run of every family and of every
# kind of latent, a C program and a Python program make the same calls and must print the same, which must also be what
# ./generate, ./evaluate and ./tokenize print. Then every function gets wrong arguments. RUNNER is a command that runs the
# programs in C and in Python that make the calls, such as valgrind, which needs a build that it can read:
#     make MARCH=x86-64-v3 BUILDS=build/v3 all library
#     BUILD=build/v3/release RUNNER='valgrind -q --leak-check=full --errors-for-leak-kinds=definite' tests/library.sh
. "$(dirname "$0")/command_line.sh"
root=$PWD build=$PWD/${BUILD:-build/release}
if [ ! -e "$build/libmasquerade.so" ]; then
    echo 'skipped: there is no libmasquerade.so: make library builds it'
    exit 0
fi
python=
for one in python3 /usr/bin/python3; do  # the program itself, in case that python3 is a script
    python=$("$one" -c 'import sys, numpy; print(sys.executable)' 2> /dev/null) && break
done
# With its own allocator, Python would hide from valgrind what is read past the end of an array.
calls_py=(${RUNNER-})
[[ ${RUNNER-} != *valgrind* ]] || calls_py=(env PYTHONMALLOC=malloc "${calls_py[@]}" --suppressions=tests/library/python.supp)
[ -n "$python" ] || echo 'skipped: there is no python3-numpy, so nothing is called from Python: make deps'
export MASQUERADE_LIBRARY=$build/libmasquerade.so

for program in calls misuse; do
    ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror -O1 ${CFLAGS-} -I. tests/library/$program.c "$MASQUERADE_LIBRARY" -lm \
        -Wl,-rpath,"$build" -o "$folder/$program" || exit 1
done
printf '#include "library/masquerade.h"\n' | ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -I. -x c++ -c - -o "$folder/cpp.o"
is 'the header in C++' 0 $?
declared=$(grep -o 'masquerade_[a-z_]*(' library/masquerade.h | grep -vE 'masquerade_use|error\(\)' | tr -d '(' | sort -u)
is 'the library shows the functions of its header, and masquerade_cpu_ops' \
    "$(printf '%s\n' $declared masquerade_cpu_ops masquerade_error | sort -u)" \
    "$(nm -D --defined-only "$MASQUERADE_LIBRARY" | awk '{ print $3 }' | sort)"
is 'Python declares every function' "$(printf '%s\n' $declared masquerade_error | sort -u)" \
    "$(grep -oE '^    "[a-z_]+": \(' python/masquerade.py | sed 's/ *"\(.*\)".*/masquerade_\1/' |
        cat - <(printf 'masquerade_%s\n' error version free_text free_array) | sort)"

cd "$folder"
small='width=16 heads=2 inner=32 batch_tokens=200 warmup=5 vocabulary=120 max_length=20 --steps 12 --minutes 0'
train() { # RUN ARGUMENT...
    "$root/train" --device cpu "${@:2}" --out "$1" > "$1.log" 2>&1 || { cat "$1.log"; exit 1; }
}
awk 'BEGIN { split("red blue green white black grey box cup lamp ring bell door", w); srand(3)
             for (i = 0; i < 200; i++) {
                 line = ""
                 for (j = 0; j <= i % 9; j++) line = line (j ? " " : "") w[1 + int(rand() * 12)]
                 print line "\t" w[1 + i % 12] " " w[1 + i % 5] } }' > pairs.tsv
cut -f1 pairs.tsv > lines
kinds=$("$root/train" latent=nosuch 2>&1 | sed -n 's/.*: \([a-z_|]*\) is expected.*/\1/p' | tr '|' ' ')
is 'the kinds of latents' 0 "$([ "$(wc -w <<< "$kinds")" -ge 8 ]; echo $?)"
runs=
for kind in $kinds; do
    train univae-$kind univae layers=3 latent_layers=2 latent=$kind codes=7 $small --data lines && runs+=" univae-$kind"
done
train free univae layers=3 latent_layers=2 free_length=true $small --data lines
train insert univae layers=3 latent_layers=2 decoder=insertion $small --data lines
train diffuse univae layers=3 latent_layers=2 decoder=diffusion $small --data lines
train lm lm layers=2 $small --data lines
train both unilm objective=unilm,mlm layers=2 max_target=8 $small --data pairs.tsv
train hidden diffusion canvas=drawn layers=2 $small --data lines
train seq2seq seq2seq layers=2 max_target=8 $small --data pairs.tsv
train insertion insertion layers=2 max_target=8 $small --data pairs.tsv
train classify classify task=recall layers=2 width=16 heads=2 inner=32 --steps 5
train flow flow points=moons batch_rows=64 --steps 5
runs+=' free insert diffuse lm both hidden seq2seq insertion classify flow'

for run in $runs; do
    given=('red box blue' 'green cup' 'größer, ring bell')
    [ $run != both ] && [ $run != seq2seq ] && [ $run != insertion ] || given=($'red box\tcup' $'green cup\tlamp bell')
    (cd "$root" && exec ${RUNNER-} "$folder/calls" "$folder/$run" "${given[@]}") > c.txt 2> c.err
    is "$run in C: status" '0 ' "$? $(grep -v '^note: ' c.err)"
    # said NAME: the lines of the result with this name
    said() { sed -n "s/^$1: //p" c.txt | tr / '\n' | sed '$d'; }
    if [ -n "$python" ]; then
        (cd "$root" && "${calls_py[@]}" "$python" tests/library/calls.py "$folder/$run" "${given[@]}") > py.txt 2> py.err
        is "$run in Python: status" '0 ' "$? $(grep -v '^note: ' py.err)"
        is "$run: the same in C and in Python" '' "$(diff c.txt py.txt | head -c 2000)"
    fi
    if [[ $run == univae-* || $run == insert ]]; then
        is "$run: encoded and decoded as ./generate reconstructs" \
            "$(printf '%s\n' "${given[@]}" | "$root/generate" $run --device cpu --reconstruct)" "$(said decode)"
    fi
    case $run in univae-* | free | insert | diffuse | lm | hidden)  # the runs that sample text
        "$root/generate" $run --device cpu --count 3 --seed 7 > out.txt 2> generate.err
        is "$run: samples of ./generate: status" '0 ' "$? $(grep '^error: ' generate.err)"
        is "$run: the samples of ./generate" "$(cat out.txt)" "$(said samples)" ;;
    esac
    case $run in lm | both | seq2seq)  # the runs that search by a beam
        printf '%s\n' "${given[@]}" | "$root/generate" $run --device cpu --beam 3 --n-best 2 --scores > out.txt 2> generate.err
        is "$run: beams of ./generate: status" '0 ' "$? $(grep '^error: ' generate.err)"
        is "$run: the beams of ./generate" "$(cat out.txt)" "$(said beam)" ;;
    esac
    if [ $run != classify ] && [ $run != flow ]; then
        is "$run: the ids of ./tokenize" "$(printf '%s\n' "${given[@]}" | "$root/tokenize" --vocab $run/vocab.txt --ids --offsets)" \
            "$(sed -n 's/^tokenize: [0-9]*x3//p' c.txt | sed -E 's/^ //; s/([0-9]+) ([0-9]+) ([0-9]+)/\1@\2:\3/g')"
    fi
done

if [ -n "$python" ]; then
    "$root/inspect" checkpoint lm --save foreign > foreign.txt 2>&1  # a folder as Hugging Face has it
    is 'a folder of Hugging Face' 0 $?
    is 'every run in bf16' ok "$(cd "$root" && "$python" tests/library/precision.py ${runs// / "$folder"/} "$folder/foreign" 2>&1 |
        grep -v '^note: ' | tail -n 5)"
    train one-type mlm layers=2 rotary=false types=1 target_type=0 $small --data lines
    "$root/inspect" checkpoint one-type --save foreign-table > foreign.txt 2>&1
    is 'options of a folder of Hugging Face' ok "$(cd "$root" && "$python" - "$folder" 2>&1 <<'END' | grep -v '^note: '
import sys
sys.path.insert(0, "python")
import masquerade
folder = sys.argv[1]
for name, options, expected in (("foreign", {"average": 2}, "average needs the checkpoints of a run"),
                                ("lm", {"max_length": 5}, "is only for a Hugging Face folder"),
                                ("foreign", {"max_length": 60000}, None), ("foreign-table", {}, None),
                                ("foreign-table", {"max_length": 60000}, "positions; expected at most")):
    try:
        masquerade.Run.open(f"{folder}/{name}", **options).close()
        said = ""
    except masquerade.Misuse as error:
        said = str(error)
    if said if expected is None else expected not in said:
        print(name, options, said)
print("ok")
END
)"
    # Scores of held-out lines are what ./evaluate prints.
    head -n 20 lines > held.txt && head -n 20 pairs.tsv > held.tsv
    for measured in 'lm lm.loss' 'both unilm.loss' 'seq2seq seq2seq.loss' 'hidden diffusion.sentence+diffusion.length' \
        'univae-gaussian nll_token' 'univae-vmf nll_token'; do
        set -- $measured
        file=held.txt && [ $1 = both ] || [ $1 = seq2seq ] && file=held.tsv
        "$root/evaluate" $1 --device cpu --data $file --json > out.json 2> /dev/null
        is "$1: $2 of ./evaluate is the sum of the scores" 0 "$(cd "$root" && "$python" - "$folder" $1 $2 $file <<'END'
import json, sys
sys.path.insert(0, "python")
import masquerade
folder, run, key, file = sys.argv[1:]
scores = masquerade.Run.open(f"{folder}/{run}").score(open(f"{folder}/{file}").read().splitlines())
nats, tokens = scores.sum(axis=0)
table = json.load(open(f"{folder}/out.json"))
measured = sum(table[one]["value"] for one in key.split("+"))
mean = nats / (len(scores) if "sentence" in key else tokens)
print(0 if abs(mean - measured) < 1e-9 else f"{mean} against {measured}")
END
)"
    done
    # The attention of a line, whether it is a text or a pair, leaves the run as it was.
    cp -r hidden unmeasured && rm unmeasured/lengths.txt
    is 'attention changes no run' ok "$(cd "$root" && "$python" - "$folder" $runs unmeasured 2>&1 <<'END' | grep -vE '^(note|warning): '
import sys
sys.path.insert(0, "python")
import masquerade

def tried(work):
    try:
        return work()
    except masquerade.Error as error:
        return str(error)

for name in sys.argv[2:]:
    run = masquerade.Run.open(f"{sys.argv[1]}/{name}")
    lines = ["red box", "green cup\tlamp bell"]
    all_of = lambda: [tried(lambda: run.generate(count=2)), tried(lambda: run.score(lines[:1]).tolist())] + [
        tried(lambda: run.generate([line])) for line in lines]
    before = all_of()
    for line in lines:
        tried(lambda: run.attention(line))
        if all_of() != before:
            print(name, repr(line), before, all_of())
print("ok")
END
)"
    is 'the page and the notebooks' "$(printf 'docs/%s cells\n' 'library.md: 6' 'notebooks/a_mask.ipynb: 7' 'notebooks/latent_space.ipynb: 7')" \
        "$(cd "$root" && "$python" tests/library/page.py docs/library.md docs/notebooks/*.ipynb 2> "$folder/page.err"; grep -vE '^(note|warning): ' "$folder/page.err" | tail -n 5)"
    is 'threads, forks, Ctrl-C, copies and wrong arguments in Python' ok \
        "$(cd "$root" && "$python" tests/library/interface.py "$folder" 2>&1 | grep -v '^note: ' | tail -n 3)"
    # Training from Python: the bits of ./train, a callback that stops, one that fails, and a mask from an array.
    is 'training from Python' ok "$(cd "$root" && "$python" tests/library/train.py "$folder" 2>&1 | tail -n 3)"
    cmp -s python/step-000012/model.safetensors lm/step-000012/model.safetensors
    is 'training from Python has the bits of ./train' 0 $?
fi

${RUNNER-} ./misuse univae-gaussian classify lm/vocab.txt > out.txt
is 'wrong arguments' "0 $(tail -n 1 out.txt)" "$? $(cat out.txt)"
tail -n 1 out.txt
finish library

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that no program overwrites a file that it reads. Every option that names an output is tried with every input of
# its command: by name, through links, as a file of a run or of a model, as standard input, and as standard output.
# Takes ten seconds.
. "$(dirname "$0")/command_line.sh"
build=$PWD/${BUILD:-build/release}
golden=$PWD/tests/golden/hugging_face
programs=$(basename -s .cpp tools/*.cpp)
cd "$folder"
PATH=$build:$PATH

for i in $(seq 60); do printf 'the %d cats see %d dogs\t%d mice\n' $((i % 7)) $((i % 5)) $((i % 3)); done > pairs.tsv
cp pairs.tsv held.tsv
cp pairs.tsv other.tsv
cut -f 1 pairs.tsv > lines.txt
small='width=16 heads=2 inner=32 vocabulary=80 batch_tokens=100 max_length=16 layers=1 --steps 2 --threads 1 --device cpu'
train unilm $small --data pairs.tsv --dev held.tsv --out run > log 2>&1 || cat log
train lm $small --data lines.txt --out judge > log 2>&1 || cat log
train univae ${small/layers=1/layers=2 latent_layers=1} --data pairs.tsv --dev held.tsv --out vae > log 2>&1 || cat log
cp -r "$golden/bert_google" model
printf 'a\tb\n' > replaced
echo layers=1 > settings
cp lines.txt points.npy
cp run/vocab.txt vocab
mkdir lists
echo x > lists/x_Packages

# PROGRAM [COMMAND], a tab, an option that names an output, a tab, a command with all inputs that go with it.
table='
train	--out	train unilm --data pairs.tsv --dev held.tsv --config settings --vocab vocab
train	--out	train unilm --data pairs.tsv --init run
generate	--vectors	generate run --nearest lines.txt
generate	--vectors	generate run --from-vectors points.npy
evaluate	--outputs	evaluate run --data other.tsv --labelled lines.txt
evaluate	--outputs	evaluate run/latest
generate	--vectors	generate run --prior judge
tokenize	--simplify	tokenize --vocab vocab --replace replaced
tokenize	--write-json	tokenize --vocab vocab
inspect mask	--svg	inspect mask bert
inspect attention	--out	inspect attention run
inspect program	--graph	inspect program lm
inspect program	--memory	inspect program lm
inspect program	--timeline	inspect program lm
inspect plot	--out	inspect plot run judge
inspect report	--out	inspect report run
inspect report	--out	inspect report vae --data other.tsv
inspect report	--out	inspect report run/step-000002
inspect checkpoint	--logits	inspect checkpoint model --tokens vocab
bench	--save	bench tokenizer --text lines.txt --vocab vocab
bench	--save	bench many lm --data lines.txt --processes 1
bench attention	--plot	bench attention --kinds softmax'
# Options that name an output folder. Nothing in the folder is replaced, or the command reads no file.
folders='train --out
tokenize --pack
inspect program --dump
inspect checkpoint --save
corpus build --out
corpus grammar --out'
# Inputs to which the command only adds, or whose command has no output.
alone='train --resume
train --fit-prior
evaluate --judge
tokenize --check
corpus build --lists
bench tokenizer --text
bench tokenizer --vocab
bench many --data
inspect checkpoint path'

rm log
cksum $(find . -type f | sort) > before
ln -s run linked-run
tried=0
# refused NAME COMMAND...: checks for status 2, and for a message that an input would be lost
refused() {
    local message status
    tried=$((tried + 1))
    message=$(timeout 60 "${@:2}" 2>&1 > /dev/null < "${input:-/dev/null}")
    status=$?
    is "$1: status" 2 "$status"
    case $message in *'error: '*' as well, and would be lost: give '*) ;; *) is "$1" 'would be lost' "$message" ;; esac
}
while IFS=$'\t' read -r of option command; do
    [ -n "$of" ] || continue
    inputs=
    for word in $command; do
        [ -f "$word" ] && inputs+=" $word"
        case $word in
            run*) inputs+=' run/run.json run/log.jsonl run/samples.txt run/vocab.txt run/tokenizer.json
                            run/latest/model.safetensors run/step-000002/state.safetensors run/step-000002/new linked-run/run.json
                            linked-run/latest/config.json' ;;
            judge) inputs+=' judge/run.json judge/latest/model.safetensors' ;;
            model) inputs+=' model/config.json model/model.safetensors model/vocab.txt' ;;
        esac
    done
    # These commands also read the text of the run.
    case $command in evaluate*|*attention\ run*|*report*) inputs+=' pairs.tsv held.tsv' ;; esac
    for input_of in $inputs; do
        refused "$command $option $input_of" $command $option "$input_of"
        [ -f "$input_of" ] || continue
        rm -f soft hard
        ln -s "$input_of" soft
        ln "$input_of" hard
        refused "$command $option through a link to $input_of" $command $option soft
        refused "$command $option, another name of $input_of" $command $option hard
        rm soft hard
    done
    echo text > stream
    input=stream refused "$command $option is standard input" $command $option stream
    message=$(timeout 60 $command $option both 2>&1 > both < /dev/null)
    is "$command $option is standard output" 1 "$(grep -c 'is standard output as well, and would be lost' <<< "$message")"
    rm -f stream both
done <<< "$table"

# Every option of --help that names a file or folder must have a row above.
for program in $programs; do
    parts=$(commands_of "$build/$program")
    for part in '' $parts; do
        while read -r option; do
            name="$program${part:+ $part}"
            grep -qe "^$name	$option	\|^$name	.*\( $option \)" <<< "$table" || grep -qxFe "$name $option" <<< "$folders"$'\n'"$alone" ||
                is "$name $option" 'a row in tests/outputs.sh' none
        done < <(files_of "$build/$program" $part)
    done
done
is 'outputs that were tried' 'more than 150' "$([ $tried -gt 150 ] && echo more than 150 || echo $tried)"

# ---- standard output is an output as well ----
cp lines.txt both
generate judge < both 2> error >> both
is 'standard input and output: status' 2 $?
is 'standard input and output' 1 "$(grep -c '^error: standard output is standard input as well' error)"
cp vocab both
tokenize --vocab both < lines.txt 2> error >> both
is 'standard output and --vocab: status' 2 $?
cmp -s vocab both
is 'standard output and --vocab: it is as it was' 0 $?
rm both error

# ---- a file that is no input may be written again and again, also in a run folder ----
for _ in 1 2; do
    inspect attention run --out run/attention.html > log 2>&1
    is 'a page in the run folder' 0 $?
    evaluate run --limit 3 --device cpu --outputs run/outputs.tsv > run/evaluation.txt 2> log
    is 'outputs and a table in the run folder' 0 $?
done
rm run/attention.html run/outputs.tsv run/evaluation.txt
cp other.tsv .new-o.tsv
evaluate run --limit 3 --device cpu --data .new-o.tsv --outputs o.tsv > log 2>&1
is 'a name that was a temporary one: status' 0 $?
cmp -s other.tsv .new-o.tsv
is 'a name that was a temporary one: it is as it was' 0 $?
rm -f .new-o.tsv o.tsv log
is 'all inputs are as they were' "$(cat before)" "$(cksum $(find . -type f ! -name before | sort))"

# ---- pictures ----
if command -v gnuplot > /dev/null; then
    if has_full_disk; then
        ln -s /dev/full full.svg
        refuses 'curves on a full disk' 1 'cannot write full.svg: No space left on device' inspect plot run --out full.svg
        ! command -v dot > /dev/null ||
            refuses 'a graph on a full disk' 1 'cannot write full.svg: No space left on device' inspect program lm --graph full.svg
    fi
    echo old > curves.svg
    small_files() { (ulimit -f 1; "$@" > /dev/null); }
    refuses 'curves above the limit of a file' 1 'curves.svg' small_files inspect plot run --out curves.svg
    is 'curves above the limit of a file: the old ones' old "$(cat curves.svg)"
    mkdir bin
    printf '#!/bin/sh\necho half a picture\n' > bin/gnuplot
    chmod +x bin/gnuplot
    PATH=$PWD/bin:$PATH refuses 'a drawer that ends early' 1 'curves.svg was not drawn: gnuplot did not end well' \
        inspect plot run --out curves.svg
    is 'a drawer that ends early: the old curves' old "$(cat curves.svg)"
    is 'no part of them' '' "$(find . -name '.new-*')"
fi
finish outputs

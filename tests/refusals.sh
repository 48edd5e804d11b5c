#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If a training is refused, it must leave nothing behind: no run folder, and one error line. The families and settings
# are those that the programs list, so a new one is tested without a change here. The kinds of attention are tested in
# tests/models/runs/combinations_test.cpp. The second half tests the folders that a training does leave: of a run that
# was killed before its first checkpoint, of a run whose links were copied as folders, and of runs with names that are
# not UTF-8.
. "$(dirname "$0")/command_line.sh"
root=$PWD build=$PWD/${BUILD:-build/release}
cd "$folder"
train() { timeout 20 "$build/train" --device cpu --threads 1 "$@"; }
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'the red cup %s is here\tcup %s\n' $i $i; done > pairs.tsv
cut -f 1 pairs.tsv > sentences.txt
mkdir files files/a files/b
for i in $(seq 40); do echo "$i is a" > files/a/$i; echo "b is $i" > files/b/$i; done

families=$(families_of "$build/inspect")
reads_no_text() { [ $1 = classify ] || [ $1 = flow ]; }
# small FAMILY: prints settings that make a training take moments; leaves out those that the family does not have
small() {
    local keys pair
    keys=$(settings_of "$build/train" "$1")
    for pair in layers=2 latent_layers=1 decoder_layers=1 width=16 heads=2 inner=16 vocabulary=64 batch_tokens=100 max_length=16 \
        prior_sentences=0 task=recall:length=16:pairs=2:held_out=9; do
        case $pair in
            task=*) [ "$1" != classify ] || printf '%s ' ${pair//:/ } length=16 vocabulary=16 ;;
            vocabulary=*) reads_no_text $1 || printf '%s ' $pair ;;
            *) ! grep -qx "${pair%%=*}" <<< "$keys" || printf '%s ' $pair ;;
        esac
    done
    reads_no_text $1 || printf '%s ' --data pairs.tsv
}

# refused NAME COMMAND...: checks that the command, which would make the folder `out`, ends with one error line and
# makes nothing
refused() {
    local before message status
    before=$(ls -AR)
    message=$("${@:2}" --out "${out:-out}" 2>&1 > /dev/null)
    status=$?
    case $status in 1 | 2) status='1 or 2' ;; esac
    is "$1: status" '1 or 2' "$status"
    is "$1: error lines" 1 "$(grep -ac '^error: ' <<< "$message")"
    is "$1: in our words" '' "$(grep -aE 'unexpected kind or size|terminate|what\(\)' <<< "$message")"
    is "$1: what it made" "$before" "$(ls -AR)"
    rm -rf out runs
}
# either NAME COMMAND...: checks that the command trains one step and saves it, or is refused
either() {
    local name=$1
    shift
    if "$@" --steps 1 --out out > report 2>&1; then
        is "$name: has a checkpoint" yes "$([ -e out/latest/model.safetensors ] && echo yes)"
        rm -rf out
    else
        rm -rf report
        refused "$name" "$@" --steps 1
    fi
}
printf '[UNK]\n[PAD]\n[CLS]\n[SEP]\n[MASK]\ncup\n' > unk-first
printf '[PAD]\n[CLS]\n[SEP]\n[MASK]\ncup\n' > no-unk
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n' > specials
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\ncup\n' > no-mask
: > empty
mkfifo pipe
head -c 100000 /dev/urandom > binary

for family in $families; do
    given=$(small $family)
    refused "$family: no such setting" train $family $given nosuchkey=1
    refused "$family: a mask that says nothing" train $family $given mask='A blue'
    refused "$family: settings that are not there" train $family $given --config nowhere
    out=empty/run refused "$family: a folder that cannot be made" train $family $given --steps 1
    refused "$family: --init of nothing" train $family $given --init nowhere
    either "$family: types=1" train $family $given types=1
    either "$family: pairs=true and a mask" train $family $given pairs=true mask='A full; B causal sees A'
    either "$family: a text without pairs" train $family $given --data sentences.txt
    for mask in 'A none; B none' 'A causal; B full' 'A full; B causal sees A[3:4]' 'A full window=2; B causal window=2'; do
        either "$family: mask $mask" train $family $given mask="$mask"
    done
    for objective in $("$build/inspect" models | awk -v family=$family '/^[a-z]/ { on = $1 == family } on && sub(/.*objectives:/, "") { gsub(/,/, ""); print }'); do
        either "$family: $objective" train $family $given objective=$objective
        either "$family: $objective of special tokens" train $family $given objective=$objective --vocab specials
        either "$family: $objective without [MASK]" train $family $given objective=$objective --vocab no-mask
    done
    if ! reads_no_text $family; then
        for vocabulary in unk-first no-unk specials empty nowhere files; do
            refused "$family: vocabulary $vocabulary" train $family $given --vocab $vocabulary
        done
        for text in nowhere files pipe empty binary; do refused "$family: text $text" train $family $given --data $text; done
    fi
    [ $family != flow ] || continue  # a flow has no weights for --init
    # makes weights whose first loss is NaN or infinite
    train $family $given --steps 1 --precision f32 --out hostile > /dev/null 2>&1
    is "$family: a run" 0 $?
    weights=$(readlink -f hostile/latest)/model.safetensors
    sed -i 's/masquerade\.checksum/masquerade.chexsum/' "$weights"  # as in a file of another program, which has none
    size=$(stat -c %s "$weights")
    for i in $(seq 16); do printf '\377\377\177\177'; done > large
    for i in 1 2 3 4 5 6; do cat large large > larger; mv larger large; done
    dd if=large of="$weights" bs=4 seek=$((size / 4 - 1024)) conv=notrunc status=none
    refused "$family: weights that give no number" train $family $given --init hostile --steps 3
    rm -rf hostile
done

# ---- a training that ended before its first checkpoint leaves nothing that is in the way ----
pairs=$(small unilm)
"$build/train" --device cpu unilm $pairs --minutes 2 --out early > /dev/null 2>&1 & pid=$!
for _ in $(seq 200); do [ -s early/log.jsonl ] && break; sleep 0.05; done
refuses 'a folder that is trained into' 1 'another program is training into early' train unilm $pairs --steps 1 --out early
kill -KILL $pid
wait $pid 2> /dev/null
is 'killed before a checkpoint: no record' no "$([ -e early/run.json ] && echo yes || echo no)"
refuses 'killed before a checkpoint: --resume' 1 'was the run stopped before its first? Start it again' train --resume early
train unilm $pairs --steps 2 --out early > /dev/null
is 'killed before a checkpoint: the same --out' 0 $?
is 'killed before a checkpoint: a whole run' 'log.jsonl run.json' "$(ls early/*.json* 2> /dev/null | xargs -n 1 basename | xargs)"
refuses 'a run is in the way' 1 'early holds something already; continue with --resume early' train unilm $pairs --steps 1 --out early
refuses 'a name of a checkpoint' 1 'is the name of a checkpoint in a run folder' train unilm $pairs --steps 1 --out step-000010

# ---- a copy of a run, made by a program that follows links ----
cp -rL early copy
train --resume copy --steps 4 > /dev/null
is 'a copy without links goes on' 0 $?
is 'a copy without links: has links again' step-000004 "$(readlink copy/latest)"

# ---- names that are not UTF-8, for every option that takes one ----
odd=$'caf\xe9%41'
cp pairs.tsv "$odd.tsv"
cp early/vocab.txt "$odd.txt"
cp -r early "$odd-init"
echo width=32 > "$odd.conf"
cp -r files "$odd-files"
mv "$odd-files/b" "$odd-files/$odd"
# odd_run NAME ARGUMENT...: trains into a folder with such a name, resumes, and measures
odd_run() {
    rm -rf "$odd"
    train "${@:2}" --steps 2 --out "$odd" > report 2>&1
    is "$1: trains" 0 $?
    iconv -f UTF-8 -t UTF-8 "$odd/run.json" "$odd/latest/config.json" > /dev/null
    is "$1: its records are UTF-8" 0 $?
    train --resume "$odd" --steps 4 > report 2>&1
    is "$1: goes on" '0 done after 4 steps, saved in caf\xe9%41' "$? $(grep -a '^done' report)"
    local other=(--data "$odd.tsv")
    [ "$2" != classify ] || other=()
    "$build/evaluate" --device cpu "$odd" --limit 4 "${other[@]}" > /dev/null 2> error
    is "$1: is measured" 0 $?
}
odd_run '--data' unilm ${pairs/pairs.tsv/"$odd.tsv"}
odd_run '--dev' unilm $pairs --dev "$odd.tsv"
odd_run '--vocab' unilm $pairs --vocab "$odd.txt"
odd_run '--config' unilm $pairs --config "$odd.conf"
odd_run '--init' unilm --init "$odd-init" --data pairs.tsv
odd_run 'a folder of classes' classify layers=1 width=16 heads=2 held_out=9 task="$odd-files"
seq $(wc -l < early/vocab.txt) > "$odd.order"
odd_run 'order=' insertion $(small insertion) --vocab early/vocab.txt order="$odd.order"

# ---- of several objectives, one has a mask that the attention does not support ----
for given in 'lsh mlm:1e9,k-bert,lm' 'sinkhorn mlm:1e9,plm'; do
    refused "attention and objectives $given" train unilm $pairs attention=${given% *} objective=${given#* } --steps 3
done

# ---- a folder of classes belongs to its run, wherever the program runs ----
train classify layers=1 width=16 heads=2 held_out=9 task=files --steps 2 --out classes > report
is 'classes: what is read' 1 "$(grep -c "^text    files of $folder/files\$" report)"
mkdir -p elsewhere/files/{a,b} && for i in $(seq 40); do echo other > elsewhere/files/a/$i; echo other > elsewhere/files/b/$i; done
"$build/evaluate" --device cpu classes > here
is 'classes: measured from elsewhere' "$(cat here)" "$(cd elsewhere && "$build/evaluate" --device cpu ../classes)"
tr 0-9 1-90 < files/a/7 > edited && cat edited > files/a/7
refuses 'classes: an edited file is not measured' 1 'have changed since the run was started' "$build/evaluate" --device cpu classes
refuses 'classes: an edited file is not trained on' 1 'have changed since the run was started' train --resume classes --steps 4

# ---- package lists replace package lists, and nothing else ----
mkdir others && echo mine > others/thesis.txt && echo old > others/archive_Packages
refuses 'lists over other things' 2 'others holds others/thesis.txt' "$root/data/fetch_catalogue.sh" others
refuses 'lists over those of the machine' 2 'holds the lists of this machine' "$root/data/fetch_catalogue.sh" /var/lib/apt/lists/
is 'lists: what was there' 'archive_Packages thesis.txt' "$(ls others | xargs)"

# ---- JSON that would fill the memory ----
# within KIB COMMAND...: runs the command with at most KIB KiB of memory
within() { (ulimit -v "$1"; "${@:2}"); }
brackets() { head -c 36000000 /dev/zero | tr '\0' '['; echo; }
brackets >> early/log.jsonl
if command -v gnuplot > /dev/null; then
    within 1000000 "$build/inspect" plot early --numbers step --out plot.svg > /dev/null 2> error
    is 'a log of brackets' '0 0' "$? $(grep -c 'out of memory' error)"
else
    echo 'skipped: a log of brackets: there is no gnuplot to draw it'
fi
seq -f 'line %g' 40 > short
within 3000000 "$build/train" univae width=16 heads=2 inner=32 layers=3 latent_layers=2 latent=none latent_size=60000,10 \
    vocabulary=80 batch_tokens=200 --data short --steps 2 --device cpu --out too-large > /dev/null 2> error
is 'a prior too large for the memory: a warning, and the run is saved' '0 1 1 /prior.safetensors is not there' \
    "$? $(grep -c 'warning: no prior was fitted: out of memory: .* 60010 numbers has matrices of 60010 x 60010' error) $(
        grep -c 'note: the training is saved; ./train --fit-prior tries again' error) $(
        "$build/generate" --device cpu too-large --count 1 2>&1 > /dev/null | grep -o '/prior.safetensors is not there')"
zeros() { printf '{"data":['; head -c 84000000 /dev/zero | sed 's/\x0\x0/0,/g'; printf '0]}'; }
zeros > early/run.json
refuses 'a record of zeros' 1 'run.json holds more than 2000000 values' within 1000000 "$build/generate" --device cpu early --count 1
finish refusals

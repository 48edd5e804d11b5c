#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests names that mean something to the program that shows them: a terminal, a shell, gnuplot, Graphviz, a browser.
# Every command of every program gets such names, as files, folders, settings, tensors, tokens and keys. The
# output and the pictures of a command must contain no control sequence, and no line may begin inside a name. No name
# may be run as a command. Each command must end well, or with one error line. Takes half a minute.
. "$(dirname "$0")/command_line.sh"
build=$PWD/${BUILD:-build/release}
golden=$PWD/tests/golden/hugging_face
programs=$(basename -s .cpp tools/*.cpp)
cd "$folder"

# `spoken` contains line feeds, all quotes, commands of shells and of gnuplot, terminal escapes, C1 control characters,
# marks of text direction, separators of lines and paragraphs, and markup. It is valid UTF-8, as JSON must be. `hostile`
# is `spoken` with bytes at its end that are not valid UTF-8.
spoken=$'n\nspoofed\n!touch canary\nsystem("touch canary")\n#\'"`touch canary`$(touch canary);touch canary;'
spoken+=$'\e]0;t\a\e[31m\x7f\t\r\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xe2\x80\xa9\xd8\x9c<b>&\\'
hostile=$spoken$'\xff\xc3('
json() { python3 -c 'import json, sys; print(json.dumps(sys.argv[1], ensure_ascii=True))' "$spoken"; }
in_json=$(json)

commands=0
# shows NAME COMMAND...: runs the command. The end of this file examines its output and its errors.
shows() {
    local status errors
    commands=$((commands + 1))
    timeout 60 "${@:2}" < "${input:-/dev/null}" > "out.$commands" 2> "err.$commands"
    status=$?
    errors=$(grep -c '^error: ' "err.$commands")
    case $status.$errors in 0.0 | [12].1) status=well ;; esac
    is "$1: ends well, or with one error line" well "$status"
    is "$1: nothing of its own begins a line" '' "$(grep -al '^ *spoofed' "out.$commands" "err.$commands")"
}
# draws NAME FILE COMMAND...: like shows, but the command must also write FILE
draws() {
    shows "$1" "${@:3}"
    is "$1: status" '' "$(cat "err.$commands" | grep '^error: ')"
    cp -- "$2" "drawn.$commands" 2> /dev/null
    is "$1: a picture" 0 $?
    rm -f -- "$2"
}

for i in $(seq 60); do printf 'the %d cats see %d dogs\t%d mice\n' $((i % 7)) $((i % 5)) $((i % 3)); done > pairs.tsv
cut -f 1 pairs.tsv > lines.txt
small='width=16 heads=2 inner=32 vocabulary=80 batch_tokens=100 max_length=16 --steps 2 --threads 1 --device cpu'
"$build/train" univae $small layers=2 latent_layers=1 latent_size=4 --data lines.txt --out univae > log 2>&1 || cat log
"$build/train" unilm $small layers=1 --data pairs.tsv --out unilm > log 2>&1 || cat log
"$build/train" lm $small layers=1 --data lines.txt --out lm > log 2>&1 || cat log
"$build/train" insertion $small layers=1 --data pairs.tsv --out insertion > log 2>&1 || cat log
# In every run, run.json and the log get such a name: as the name of the text, and as the name of a number.
for run in univae unilm lm insertion; do
    python3 - "$run" "$spoken" <<'END'
import json, sys
run, name = sys.argv[1:]
record = json.load(open(f'{run}/run.json'))
record['data']['name'] = name
json.dump(record, open(f'{run}/run.json', 'w'))
for step in 1, 2, 3: print(json.dumps({'step': step, name: step, 'loss': 1 / step}), file=open(f'{run}/log.jsonl', 'a'))
END
    mv "$run" "$hostile$run"
done
univae=$hostile'univae' unilm=$hostile'unilm' lm=$hostile'lm' insertion=$hostile'insertion'
cp pairs.tsv "$hostile.tsv"
cp lines.txt "$hostile.txt"
printf '%s\t%s\n' "${spoken//$'\n'/ }" 1 > "$hostile.labelled"
cat pairs.tsv >> "$hostile.labelled"
cp "$univae/vocab.txt" "$hostile.vocab"
printf '%s\n' "${spoken//$'\n'/ }" >> "$hostile.vocab"
# A model from elsewhere that has a tensor with such a name, and a file with this tensor alone.
cp -r "$golden/bert_bare" "$hostile.bert"
python3 - "$hostile.bert" "$hostile.safetensors" "$spoken" <<'END'
import json, struct, sys
folder, alone, name = sys.argv[1:]
path = folder + '/model.safetensors'
bytes_ = open(path, 'rb').read()
size = struct.unpack('<Q', bytes_[:8])[0]
header, data = json.loads(bytes_[8:8 + size]), bytes_[8 + size:]
header[name] = {'dtype': 'F32', 'shape': [1], 'data_offsets': [len(data), len(data) + 4]}
header.setdefault('__metadata__', {})['format'] = 'pt'
header['__metadata__'].pop('checksum', None)
def write(path, header, data):
    text = json.dumps(header).encode()
    open(path, 'wb').write(struct.pack('<Q', len(text)) + text + data)
write(path, header, data + bytes(4))
write(alone, {name: {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 4]}}, bytes(4))
END
printf '%s\n' "$in_json" > "$hostile.json"

# ---- a row for each command of each program ----
row_train() {
    local new=$hostile.new
    for option in --data --dev --vocab --config --init --resume --fit-prior; do
        shows "train $option, not there" train $option "$hostile.none" --out "$new"
        shows "train $option, a strange file" train $option "$hostile.json" --steps 1 --out "$new"
        rm -rf "$new"
    done
    for word in "$hostile" "$hostile=1" "width=$hostile" "attention=$hostile" "mask=A $hostile" "objective=$hostile"; do
        shows 'train, a strange setting' train unilm "$word" --data pairs.tsv --out "$new"
    done
    shows 'train' train lm $small layers=1 --data "$hostile.txt" --dev "$hostile.txt" --vocab "$hostile.vocab" --out "$new"
    shows 'train, a folder that is there' train lm --data "$hostile.txt" --out "$lm"
    shows 'train --init' train lm $small layers=1 --data lines.txt --init "$lm" --out "$hostile.init"
    shows 'train --init, a model of others' train lm $small --data lines.txt --init "$hostile.bert" --out "$hostile.init-bert"
    shows 'train --resume' train --resume "$lm" --steps 4 --threads 1 --device cpu
    is 'train --resume: status' '' "$(cat err.$commands)"
    shows 'train, points' train flow points="$hostile.txt" --out "$new"
    shows 'train, latents' train flow points="$univae" --out "$new"
    shows 'train --fit-prior' train --fit-prior "$univae" --threads 1 --device cpu
}
row_generate() {
    shows 'generate' generate "$univae" --count 2 --device cpu
    is 'generate: status' '' "$(cat err.$commands)"
    input=$hostile.txt shows 'generate, targets' generate "$unilm" --device cpu
    input=$hostile.txt shows 'generate, insertions' generate "$insertion" --show-rounds --device cpu
    shows 'generate, a strange slice' generate "$univae" --resample "$hostile"
    shows 'generate, a strange token' generate "$lm" --count 1 --forbid "$hostile" --device cpu
    shows 'generate, no run' generate "$hostile.none"
    shows 'generate, options of others' generate "$lm" --interpolate
    input=$hostile.txt shows 'generate, neighbours' generate "$univae" --nearest "$hostile.labelled" --vectors "$hostile.npy" --device cpu
    is 'generate, neighbours: status' '' "$(cat err.$commands | grep '^error: ')"
    shows 'generate, vectors' generate "$univae" --from-vectors "$hostile.npy" --device cpu
    is 'generate, vectors: status' '' "$(grep '^error: ' err.$commands)"
    shows 'generate, no vectors' generate "$univae" --from-vectors "$hostile.txt" --device cpu
    shows 'generate, a prior of others' generate "$univae" --prior "$lm" --device cpu
    shows 'generate, no prior' generate "$univae" --prior "$hostile.none" --device cpu
    shows 'generate, neighbours of none' generate "$lm" --nearest "$hostile.none"
}
row_evaluate() {
    shows 'evaluate' evaluate "$univae" --data "$hostile.txt" --labelled "$hostile.labelled" --judge "$lm" --samples 5 --device cpu
    is 'evaluate: status' '' "$(grep '^error' err.$commands)"
    shows 'evaluate, JSON' evaluate "$lm" --json --device cpu
    shows 'evaluate, outputs' evaluate "$unilm" --limit 3 --outputs "$hostile.outputs" --device cpu
    shows 'evaluate, a run of others' evaluate "$univae" --judge "$univae" --device cpu
    shows 'evaluate, no text' evaluate "$lm" --data "$hostile.none" --device cpu
    shows 'evaluate, strange text' evaluate "$lm" --data "$univae/latest/model.safetensors" --device cpu
}
row_tokenize() {
    printf '%s\n' "$hostile" > strange.lines
    input=lines.txt shows 'tokenize' tokenize --vocab "$hostile.vocab"
    input=strange.lines shows 'tokenize --report' tokenize --vocab "$hostile.vocab" --report
    input=strange.lines shows 'tokenize --restore' tokenize --vocab "$hostile.vocab" --restore --cased
    input=strange.lines shows 'tokenize --decode' tokenize --vocab "$hostile.vocab" --decode
    input=lines.txt shows 'tokenize --train' tokenize --vocab "$hostile.learned" --train 60
    shows 'tokenize --simplify' tokenize --vocab "$hostile.vocab" --simplify "$hostile.simple"
    shows 'tokenize --write-json' tokenize --vocab "$hostile.vocab" --write-json "$hostile.tokenizer"
    input=lines.txt shows 'tokenize --pack' tokenize --vocab "$hostile.vocab" --pack "$hostile.packed"
    is 'tokenize --pack: status' '' "$(grep '^error: ' "err.$commands")"
    input=lines.txt shows 'tokenize --pack, a folder that is there' tokenize --vocab "$hostile.vocab" --pack "$hostile.packed"
    shows 'tokenize --check' tokenize --check "$hostile.packed"
    shows 'train, a packed text' train lm $small layers=1 --data "$hostile.packed" --out "$hostile.on-packed"
    echo >> "$hostile.packed/ids.bin"
    shows 'tokenize --check, damage' tokenize --check "$hostile.packed"
    shows 'tokenize, a tokenizer' tokenize --vocab "$hostile.tokenizer"
    shows 'tokenize, a strange tokenizer' tokenize --vocab "$hostile.json"
    shows 'tokenize, strange replacements' tokenize --vocab "$hostile.vocab" --replace "$hostile.json"
    shows 'tokenize, a strange rule' tokenize --vocab "$hostile.vocab" --rules "$hostile"
}
row_inspect_mask() {
    local words=$'A full;\nB\tcausal\r'
    shows 'mask' inspect mask "$hostile"
    shows 'mask in words' inspect mask "A full; B $hostile"
    shows 'mask in words, over lines' inspect mask "$words"
    draws 'mask --svg' "$hostile.svg" inspect mask "$words" --svg "$hostile.svg"
    shows 'mask --svg, no folder' inspect mask bert --svg "$hostile.none/a.svg"
}
row_inspect_attention() {
    draws 'attention --text' "$hostile.html" inspect attention "$univae" --text "$hostile" --out "$hostile.html"
    draws 'attention --out' "$hostile.html" inspect attention "$lm" --out "$hostile.html"
    shows 'attention' inspect attention
}
row_inspect_models() { shows 'models' inspect models; }
row_inspect_gradients() { shows 'gradients' inspect gradients "$hostile"; shows 'gradients, a setting' inspect gradients unilm "$hostile=1"; }
row_inspect_op() { shows 'op' inspect op "$hostile"; shows 'op, an argument' inspect op layernorm "$hostile=1"; }
row_inspect_program() {
    shows 'program' inspect program unilm "$hostile"
    shows 'program --dump' inspect program lm layers=1 --dump "$hostile.dump"
    is 'program --dump: files' 1 "$(($(ls "$hostile.dump" | wc -l) > 20))"
    draws 'program --memory' "$hostile.svg" inspect program lm layers=1 --memory "$hostile.svg"
    draws 'program --timeline' "$hostile.time" inspect program lm layers=1 --timeline "$hostile.time"
    ! command -v dot > /dev/null || draws 'program --graph' "$hostile.svg" inspect program lm layers=1 --graph "$hostile.svg"
    shows 'program --graph, no picture' inspect program --graph "$hostile.none"
}
row_inspect_plot() {
    shows 'plot, no number' inspect plot "$lm" --numbers "$hostile" --out p.svg
    shows 'plot, no picture' inspect plot "$lm" --out "$hostile"
    command -v gnuplot > /dev/null || return
    draws 'plot' "$hostile.svg" inspect plot "$lm" "$univae" --out "$hostile.svg"
    draws 'plot --numbers' "$hostile.svg" inspect plot "$lm" --numbers "$spoken" --out "$hostile.svg"
    shows 'plot, PNG' inspect plot "$lm" "$unilm" --out "$hostile.png"
    is 'plot, PNG: is one' $'\x89PNG' "$(head -c 4 "$hostile.png")"
}
row_inspect_report() {
    draws 'report' "$hostile.html" inspect report "$univae" --data "$hostile.labelled" --limit 20 --out "$hostile.html"
    draws 'report, no latents' "$hostile.html" inspect report "$lm" --out "$hostile.html"
    shows 'report, no run' inspect report "$hostile.none"
}
row_inspect_checkpoint() {
    shows 'checkpoint, a file' inspect checkpoint "$hostile.safetensors"
    is 'checkpoint, a file: its tensor' 1 "$(grep -c '^n\\nspoofed.* F32 ' out.$commands)"
    shows 'checkpoint, a run' inspect checkpoint "$lm"
    shows 'checkpoint, a model of others' inspect checkpoint "$hostile.bert"
    is 'checkpoint, a model of others: status' '' "$(grep '^error' err.$commands)"
    shows 'checkpoint --save' inspect checkpoint "$lm" --save "$hostile.save"
    shows 'checkpoint --tokens' inspect checkpoint "$golden/bert_google" --tokens "$hostile.vocab" --save "$hostile.tokens"
    input=$hostile.txt shows 'checkpoint --logits' inspect checkpoint "$golden/bert_google" --logits "$hostile.logits"
    shows 'checkpoint, nothing' inspect checkpoint "$hostile.none"
}
row_bench_attention() {
    shows 'bench attention --mask' bench attention --kinds softmax --mask "$hostile"
    shows 'bench attention --plot' bench attention --kinds softmax --plot "$hostile"
}
row_bench_tokenizer() {
    shows 'bench tokenizer' bench --repeats 1 --save "$hostile.bench" tokenizer --text "$hostile.txt" --vocab "$hostile.vocab"
    shows 'bench tokenizer, no text' bench tokenizer --text "$hostile.none"
}
row_bench_train() { shows 'bench train' bench train --marks "$hostile"; }
row_bench_many() {
    shows 'bench many' bench --repeats 1 --save "$hostile.bench" many lm "$hostile" --data "$hostile.txt" --processes 1
    shows 'bench many, no text' bench many lm --data "$hostile.none" --processes 1
    shows 'bench many, no text for --simulate' bench many lm --data "$hostile.none" --simulate --latency 1 --bandwidth 1
}
row_bench_decode() { shows 'bench decode' bench decode --models "$hostile"; }
row_corpus_build() { shows 'corpus build' corpus build --lists "$hostile.none" --out "$hostile.corpus"; }
row_corpus_grammar() {
    shows 'corpus grammar' corpus grammar --out "$hostile.corpus"
    is 'corpus grammar: status' '' "$(cat err.$commands)"
}

PATH=$build:$PATH
for program in $programs; do
    parts=$(commands_of "$build/$program")
    for part in ${parts:-''}; do
        row=row_$program${part:+_$part}
        if ! declare -F "$row" > /dev/null; then is "$program $part" 'a row in tests/names.sh' none; continue; fi
        while read -r option; do
            is "$program $part $option" 'in its row of tests/names.sh' \
                "$(grep -qe "$option" <<< "$(declare -f "$row")" && echo in its row of tests/names.sh)"
        done < <(files_of "$build/$program" $part)
        "$row"
    done
done

# ---- what was printed and drawn ----
is 'no name was run' '' "$(find . -name canary)"
is 'nothing steers' '' "$(python3 - <<'END'
import glob, re
steers = re.compile('[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]')
for path in sorted(glob.glob('out.*') + glob.glob('err.*') + glob.glob('drawn.*')):
    raw = open(path, 'rb').read()
    try: found = steers.search(raw.decode())
    except UnicodeDecodeError as error: print(path, error, raw[:60])
    else: found and print(path, repr(raw.decode()[max(0, found.start() - 60):found.end()]))
END
)"
# The tag <b> is in the names only. If it is in a page or picture, a name was not escaped.
is 'no markup from a name' '' "$(grep -l '<b>' drawn.* 2> /dev/null)"

# ---- commands that are shown to be copied name the run ----
for family in lm univae; do
    layers=layers=2; [ $family = lm ] || layers+=" latent_layers=1 latent_size=4"
    name="$spoken it's 100 % of \$HOME !"
    train $family $small $layers --data lines.txt --out "$name.$family" > log 2>&1
    is "$family: status" 0 $?
    resume=$(grep -o './train --resume .*' log)
    eval "set -- ${resume%% --minutes 10}"
    is "$family: --resume takes the run again" "$name.$family" "$3"
    eval "set -- $(grep -o './generate .*' log)"
    is "$family: ./generate takes the run" "$name.$family" "$2"
    message=$(train $family --data lines.txt --out "$name.$family" 2>&1)
    message=${message#*continue with }
    eval "set -- ${message%, or choose another --out}"
    is "$family: the error's command takes the run" "$name.$family" "$2"
done
finish names

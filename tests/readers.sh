#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests how programs read broken files. Whatever a program reads, it must end within seconds with status 1 or 2 and one
# line `error: ...` in our own words, and must leave every file as it was. Each line of the table is one case.
. "$(dirname "$0")/command_line.sh"
root=$PWD golden=$PWD/tests/golden/hugging_face
mkdir "$folder/base" "$folder/case"
cd "$folder/base"

# ---- good files: BERTs, a RoFormer and a NomicBERT, a run, a tokenizer, pairs ----
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'the red cup %s is here\tcup %s\n' $i $i; done > pairs.tsv
cp -r "$golden/bert_google" bert
cp -r "$golden/bert_shards" shards
cp -r "$golden/roformer_char" roformer
cp -r "$golden/nomic_2048" nomic
small="layers=1 width=16 heads=2 inner=16 vocabulary=64 max_length=16 max_target=8 batch_tokens=100"
"$root/train" --device cpu unilm $small --data pairs.tsv --steps 2 --out run > ../made 2>&1 || { cat ../made; exit 1; }
"$root/tokenize" --vocab bert/vocab.txt --rules hugging-face --write-json tokenizer.json 2> ../made ||
    { cat ../made; exit 1; }
step=run/step-000002

# ---- what breaks a file ----
# nest N OPEN: prints OPEN N times
nest() { head -c "$1" /dev/zero | sed "s/\x0/$2/g"; }
deep() { nest "$1" '['; nest "$1" ']'; }
# set_json FILE KEY VALUE: sets the value of a key, by editing the text; a key that is not there is put first
set_json() {
    if grep -q "\"$2\"" "$1"; then sed -i "0,/\"$2\": *[^,}]*/s||\"$2\": $3|" "$1"; else sed -i "0,/{/s||{\"$2\": $3,|" "$1"; fi
}
# tensors FILE HEADER [BYTES]: writes a safetensors file with this header and BYTES bytes of data (default: 0)
tensors() {
    local n=${#2} i
    for i in 0 1 2 3 4 5 6 7; do printf "\\x$(printf %x $((n >> (8 * i) & 255)))"; done > "$1"
    printf %s "$2" >> "$1"
    head -c "${3:-0}" /dev/zero >> "$1"
}
# header FILE SED: changes the header of a safetensors file, and takes its checksum away; SED must keep the length
header() { LC_ALL=C sed -i "1s/masquerade.checksum/Masquerade.checksum/; $2" "$1"; }
cut_off() { truncate -s "$2" "$1"; }
text() { printf "$2" > "$1"; }
pipe() { rm -rf "$1"; mkfifo "$1"; }
directory() { rm -rf "$1"; mkdir "$1"; }
leads() { rm -rf "$1"; ln -s "$2" "$1"; }

# ---- what reads it ----
run() { timeout -k 1 "${SECONDS_ALLOWED:-5}" "$root/$1" "${@:2}"; }
init() { run train --device cpu unilm --init "$1" --data pairs.tsv --steps 1 --out made; }
train() { run train --device cpu unilm $small --steps 1 --out made "$@"; }
config() { run train --device cpu unilm vocabulary=64 --steps 1 --out made --data pairs.tsv --config "$1"; }
resume() { run train --device cpu --resume run --steps 3; }
generate() { run generate --device cpu run < pairs.tsv; }
evaluate() { run evaluate --device cpu run; }
inspect() { run inspect checkpoint "$@"; }
tokenize() { run tokenize --vocab "$@" < pairs.tsv; }

# Lists every file with its checksum, every link with its target, and everything else by name. Files above 99 MiB are
# left out.
sums() {
    find . -type f ! -size +99M -exec cksum {} + | sort
    find . -type l -printf '%p -> %l\n' -o ! -type f -print | sort
}

# broken READER BREAKER: BREAKER breaks a file in a copy of the good files, and READER reads it
cases=0
broken() {
    local before status
    cd "$folder" && rm -rf case && cp -a base case && cd case
    eval "$2"
    before=$(sums)
    eval "$1" > "$folder/out" 2> "$folder/err"
    status=$?
    case $status in 1 | 2) status='1 or 2' ;; esac
    is "$1 | $2: status" '1 or 2' "$status"
    is "$1 | $2: one error" 1 "$(grep -ac '^error: ' "$folder/err")"
    is "$1 | $2: nothing else" '' "$(grep -avE '^(error|note|warning): ' "$folder/err")"
    is "$1 | $2: in our words" '' "$(grep -aE 'json\.exception|_M_|std::|basic_string|terminate|stoi|stoull|filesystem error' "$folder/err")"
    is "$1 | $2: short" '' "$(awk 'length > 4100' "$folder/err")"
    is "$1 | $2: printable" '' "$(LC_ALL=C grep -a $'[\001-\010\013-\037\177]' "$folder/err")"
    is "$1 | $2: no file is touched" "$before" "$(sums)"
    cases=$((cases + 1))
}

while IFS='|' read -r reader breaker; do
    [ -z "$reader" ] || [ "${reader:0:1}" = '#' ] || broken "$(xargs <<< "$reader")" "${breaker# }"
done << 'TABLE'
# config.json of Hugging Face's
init bert | rm bert/config.json
init bert | text bert/config.json ''
init bert | text bert/config.json ' \n'
init bert | text bert/config.json '[1, 2]'
init bert | text bert/config.json '7'
init bert | text bert/config.json '{"a": 1, "a": 2}'
init bert | text bert/config.json '{"vocab_size": 1e999}'
init bert | text bert/config.json '\xff\xfe{}'
init bert | nest 100000 '[' > bert/config.json
init bert | deep 100000 > bert/config.json
init bert | nest 1000000 '{"a":' > bert/config.json
init bert | nest 65 '[' > bert/config.json
init bert | cut_off bert/config.json 100
init bert | cut_off bert/config.json 200G
init bert | directory bert/config.json
init bert | pipe bert/config.json
init bert | leads bert/config.json config.json
init bert | leads bert/config.json /dev/zero
init bert | set_json bert/config.json hidden_size -24
init bert | set_json bert/config.json hidden_size 0
init bert | set_json bert/config.json hidden_size 1e300
init bert | set_json bert/config.json hidden_size 24.5
init bert | set_json bert/config.json hidden_size '"24"'
init bert | set_json bert/config.json hidden_size 25
init bert | set_json bert/config.json hidden_size 18446744073709551615
init bert | set_json bert/config.json hidden_size 65535
init bert | set_json bert/config.json hidden_size "$(nest 30000 '[')$(nest 30000 ']')"
init bert | set_json bert/config.json num_attention_heads 5
init bert | set_json bert/config.json num_attention_heads 0
init bert | set_json bert/config.json num_attention_heads 4294967299
init bert | set_json bert/config.json num_hidden_layers 1073741824
init bert | set_json bert/config.json num_hidden_layers 1024
init bert | set_json bert/config.json num_hidden_layers -1
init bert | set_json bert/config.json intermediate_size null
init bert | set_json bert/config.json intermediate_size 262144
init bert | set_json bert/config.json vocab_size 47
init bert | set_json bert/config.json vocab_size 49
init bert | set_json bert/config.json vocab_size 1000000000000
init bert | set_json bert/config.json vocab_size true
init bert | set_json bert/config.json max_position_embeddings 0
init bert | set_json bert/config.json max_position_embeddings 1048576
init bert | set_json bert/config.json type_vocab_size 9
init bert | set_json bert/config.json type_vocab_size '[]'
init bert | set_json bert/config.json layer_norm_eps -1
init bert | set_json bert/config.json layer_norm_eps 1e300
init bert | set_json bert/config.json hidden_dropout_prob 1.5
init bert | set_json bert/config.json hidden_act '"relu"'
init bert | set_json bert/config.json hidden_act "\"$(head -c 100000 /dev/zero | tr '\0' a)\""
init bert | set_json bert/config.json model_type 7
init bert | set_json bert/config.json model_type '"\\u001b[31m"'
init bert | set_json bert/config.json pad_token_id -1
init roformer | set_json roformer/config.json embedding_size -3
init roformer | set_json roformer/config.json max_position_embeddings 1000000000
init roformer | set_json roformer/config.json rotary_value 3
init nomic | set_json nomic/config.json n_head 0
init nomic | set_json nomic/config.json n_embd 24
init nomic | set_json nomic/config.json rotary_emb_base 0
init nomic | set_json nomic/config.json head_dim 4294967304
init nomic | set_json nomic/config.json rope_parameters '[]'
init nomic | set_json nomic/config.json rope_scaling '{"factor": 2}'
init nomic | set_json nomic/config.json activation_function '"gelu"'
# safetensors
init bert | rm bert/model.safetensors
init bert | text bert/model.safetensors ''
init bert | text bert/model.safetensors 'abc'
init bert | cut_off bert/model.safetensors 3000
init bert | cut_off bert/model.safetensors 50G
init bert | directory bert/model.safetensors
init bert | pipe bert/model.safetensors
init bert | leads bert/model.safetensors /dev/zero
init bert | tensors bert/model.safetensors "$(nest 100000 '[')"
init bert | tensors bert/model.safetensors "{\"__metadata__\":$(nest 100000 '[')"
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' 8
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}' 6
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}' 4
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}' 4
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551616]}}' 4
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}}' 4
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}'
init bert | tensors bert/model.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 9
init bert | tensors bert/model.safetensors '{}'
init bert | tensors bert/model.safetensors '{"a\u001b[31m\n":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}' 4
init bert | tensors bert/model.safetensors "{\"$(head -c 100000 /dev/zero | tr '\0' a)\":7}"
init bert | header bert/model.safetensors 's/F32/I32/'
init bert | header bert/model.safetensors 's/"F32"/"F64"/'
init bert | header bert/model.safetensors 's/attention.self.key/attention.self.kex/'
init bert | printf '\377\377\377\177' | dd of=bert/model.safetensors bs=1 seek=$(($(stat -c %s bert/model.safetensors) - 400)) conv=notrunc status=none
inspect bert/model.safetensors | cut_off bert/model.safetensors 3000
inspect bert/model.safetensors | tensors bert/model.safetensors "$(nest 90000 '[')"
inspect bert/model.safetensors | tensors bert/model.safetensors "{\"a\":{\"dtype\":$(deep 100000)}}"
inspect bert/model.safetensors | pipe bert/model.safetensors
inspect bert/model.safetensors | directory bert/model.safetensors
inspect bert | nest 100000 '[' > bert/config.json
inspect bert | deep 100000 > bert/config.json
inspect bert | set_json bert/config.json hidden_size 65532
inspect bert --save made | set_json bert/config.json vocab_size 40000000000
# shards
init shards | text shards/model.safetensors.index.json '{}'
init shards | text shards/model.safetensors.index.json '{"weight_map": 3}'
init shards | text shards/model.safetensors.index.json '{"weight_map": {"a": 3}}'
init shards | text shards/model.safetensors.index.json '{"weight_map": {"a": ""}}'
init shards | text shards/model.safetensors.index.json '{"weight_map": {"a": "../bert/model.safetensors"}}'
init shards | text shards/model.safetensors.index.json '{"weight_map": {"a": "/dev/zero"}}'
init shards | text shards/model.safetensors.index.json '{"weight_map": {"a": "\u0000"}}'
init shards | nest 100000 '{"weight_map":' > shards/model.safetensors.index.json
init shards | text shards/model.safetensors.index.json "{\"weight_map\":{\"a\":$(deep 100000)}}"
init shards | pipe shards/model.safetensors.index.json
init shards | rm shards/model-00002-of-00003.safetensors
init shards | cp shards/model-00001-of-00003.safetensors shards/model-00002-of-00003.safetensors
init shards | pipe shards/model-00002-of-00003.safetensors
init shards | cut_off shards/model-00003-of-00003.safetensors 100
# vocabularies and tokenizer.json
init bert | rm bert/vocab.txt
init bert | directory bert/vocab.txt
init bert | pipe bert/vocab.txt
init bert | text bert/vocab.txt ''
init bert | text bert/vocab.txt '[PAD]\n[UNK]\n'
init bert | nest 100000 '[' > bert/tokenizer.json
init bert | deep 100000 > bert/tokenizer.json
init bert | pipe bert/tokenizer_config.json
init bert | nest 100000 '[' > bert/tokenizer_config.json
init bert | deep 100000 > bert/tokenizer_config.json
tokenize tokenizer.json | nest 100000 '[' > tokenizer.json
tokenize tokenizer.json | deep 100000 > tokenizer.json
tokenize tokenizer.json | cut_off tokenizer.json 500
tokenize tokenizer.json | text tokenizer.json '{"version": {"a": 1}}'
tokenize tokenizer.json | set_json tokenizer.json max_input_chars_per_word -1
tokenize tokenizer.json | set_json tokenizer.json model 7
tokenize tokenizer.json | sed -i 's/"\[CLS\]": 2/"[CLS]": 1e300/' tokenizer.json; text tokenizer.json '{"model": {"vocab": {"a": 1e300}}}'
tokenize tokenizer.json | text tokenizer.json '{"model": {"type": "WordPiece", "vocab": {"a": 0, "a": 1}}}'
tokenize tokenizer.json | pipe tokenizer.json
tokenize tokenizer.json | directory tokenizer.json; directory tokenizer.json/tokenizer.json
tokenize vocab.txt | pipe vocab.txt
tokenize vocab.txt | leads vocab.txt /dev/zero
tokenize bert/vocab.txt --replace replace.txt | text replace.txt 'ab\tc\n'
tokenize bert/vocab.txt --replace replace.txt | pipe replace.txt
# settings
config settings | true
config settings | directory settings
config settings | pipe settings
config settings | leads settings /dev/zero
config settings | leads settings settings
config settings | text settings 'width\n'
config settings | text settings 'width=1e300\n'
config settings | text settings 'wdith=64\n'
config settings | text settings 'width=64\nwidth=\x1b[31m\n'
config settings | head -c 1000000 /dev/zero > settings
config settings | text settings '{"width": [[]]}'
config settings | text settings '{"width": 64, "width": 32}'
config settings | text settings '{"width": 64'
config settings | text settings '{"width": -64}'
config settings | text settings '{"width": "\\u0000"}'
config settings | nest 100000 '{"a":' > settings
config <(printf 'width=7') | true
config <(nest 100000 '{"a":') | true
config settings | deep 100000 > settings
config settings | text settings "{\"width\":$(deep 100000)}"
config <(true) | true
config /dev/stdin < <(printf 'layers=0') | true
train --data pairs.tsv --dev bert | true
train --data pairs.tsv | pipe pairs.tsv
train --data pairs.tsv | text pairs.tsv ''
train --data pairs.tsv --vocab words | pipe words
# runs
resume | text run/run.json ''
resume | text run/run.json '{}'
resume | text run/run.json '[]'
resume | nest 100000 '[' > run/run.json
resume | deep 100000 > run/run.json
resume | set_json run/run.json resumed 3
resume | set_json run/run.json hash 7
resume | set_json run/run.json hash '"x"'
resume | set_json run/run.json lines '"x"'
resume | set_json run/run.json data 7
resume | pipe run/run.json
resume | directory run/run.json
resume | rm run/vocab.txt
resume | pipe run/vocab.txt
resume | text run/vocab.txt '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'
resume | leads run/latest step-000009; rm -r $step
resume | leads run/latest latest; rm -r $step
resume | leads run/latest ..; rm -r $step
resume | leads run/latest step-000002; cut_off $step/state.safetensors 400
resume | rm $step/state.safetensors
resume | tensors $step/state.safetensors '{}'
resume | tensors $step/state.safetensors "$(nest 100000 '[')"
resume | header $step/state.safetensors 's/"best"/"bext"/'
resume | header $step/state.safetensors 's/adamw.first/adamw.fifth/'
resume | pipe $step/model.safetensors
resume | nest 100000 '[' > $step/config.json
generate | text $step/config.json '{"model_type": 7}'
generate | text $step/config.json '{"model_type": "unilm", "unilm": 7}'
generate | text $step/config.json '{"model_type": "unilm", "unilm": {"width": [1]}}'
generate | set_json $step/config.json width 17
generate | set_json $step/config.json width 32
generate | set_json $step/config.json layers 1e300
generate | set_json $step/config.json layers 3
generate | nest 100000 '{"unilm":' > $step/config.json
generate | header $step/model.safetensors 's/embedding.token/embedding.toxen/'
generate | cut_off $step/model.safetensors 900
generate | rm -r $step
generate | leads run/latest /dev/zero; rm -r $step
generate | rm -r run; text run 'a file'
generate | rm -r run; mkfifo run
evaluate | text run/run.json '{"data": {"name": 7}}'
evaluate | nest 100000 '[' > run/run.json
evaluate | deep 100000 > run/run.json
evaluate | nest 100000 '[' > $step/config.json
evaluate | deep 100000 > $step/config.json
evaluate | rm pairs.tsv
evaluate | text pairs.tsv 'changed\tpairs\n'
evaluate | tensors $step/model.safetensors '{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}' 4
inspect run | rm $step/model.safetensors
inspect run | nest 100000 '[' > $step/config.json
inspect run | deep 100000 > $step/config.json
TABLE

# ---- what is read, and said ----
cd "$folder" && rm -rf case && cp -a base case && cd case
is 'settings from a pipe' 'width 32,' "$(config <(echo width=32) 2> /dev/null | grep -o 'width 32,')"
rm -rf made
is 'settings from standard input' 'width 32,' "$(echo width=32 | config /dev/stdin 2> /dev/null | grep -o 'width 32,')"
rm -rf made
header bert/model.safetensors 's/bert.pooler.dense/bert.stooge.dense/g'
init bert 2>&1 > made.txt | grep '^warning' > said
is 'unknown tensors' 'warning: bert: 2 tensors do not belong to this model and were ignored; the first is bert.stooge.dense.bias' "$(cat said)"
rm -rf bert && cp -a ../base/bert bert
printf '\377\377\377\177' | dd of=bert/model.safetensors bs=1 seek=$(($(stat -c %s bert/model.safetensors) - 400)) conv=notrunc status=none
header bert/model.safetensors ''
init bert 2>&1 > made.txt | grep -oE 'tensor [a-zA-Z.]*[^;]* holds nan as number [0-9]* of 0 to [0-9]*; weights are finite' > said
is 'NaN' 1 "$(wc -l < said)"
is 'at least 120 cases' 1 "$((cases >= 120))"
cd "$root"
echo "readers: $cases cases"
finish readers

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that a tokenizer stays the same in every program, for ways to read text x commands x families. The ids of the
# folder from which the tokenizer came must stay the same after ./train --init and --resume, after ./inspect checkpoint
# --save of a folder and of a run, and in --logits. With keep_tokens=true, the tokens must stay the same. KEEP=DIR
# copies the saved folders to DIR, for tests/golden/tokenizer/check_saved.py.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"
golden=$root/tests/golden/hugging_face/roformer_char

# Each line shows the effect of some options.
cat > lines.txt <<'LINES'
an ab of the cab on
Ab CAB Cäb ab̈ cab
ab中ba a文 中文
“ab” the… ab—ba
[MASK] ab [mask] a[SEP]b
<x> ab<x>ab <y> <l> ab a <r> b
zoo zooa a zoo ZOO
abcabcabcabcabcabc ab
a­b ​c
LINES
grep -v '^$' lines.txt | sed 's/\t/ /g' > text.txt
paste text.txt <(tac text.txt) > pairs.txt

token() { # TEXT KEY=VALUE...: prints an added token as JSON
    local text=$1 flags='"single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true' flag
    for flag in "${@:2}"; do flags=$(sed -E "s/\"${flag%=*}\": (true|false)/\"${flag%=*}\": ${flag#*=}/" <<< "$flags"); done
    printf '{"content": "%s", %s}' "$text" "$flags"
}
# source_folder NAME [JSON]: makes a folder of Hugging Face, with JSON as its tokenizer_config.json
source_folder() {
    cp -r "$golden" "$1"
    chmod -R u+w "$1"
    [ $# = 1 ] || printf '%s\n' "$2" > "$1/tokenizer_config.json"
}
# whole_folder NAME OPTION...: makes such a folder with a tokenizer.json that ./tokenize writes
whole_folder() {
    source_folder "$1"
    "$root/tokenize" --vocab "$1/vocab.txt" --rules hugging-face "${@:2}" --write-json "$1/tokenizer.json" 2> said || cat said
}
rows=$(wc -l < "$golden/vocab.txt")
source_folder plain
source_folder lower '{"do_lower_case": true}'
source_folder cased '{"do_lower_case": false}'
source_folder strips '{"do_lower_case": false, "strip_accents": true}'
source_folder accents '{"do_lower_case": true, "strip_accents": false}'
source_folder ideographs '{"tokenize_chinese_chars": false}'
source_folder added "{\"added_tokens_decoder\": {\"$rows\": $(token '<x>'), \"$((rows + 1))\": $(token '<y>' special=false),
    \"$((rows + 2))\": $(token '<l>' lstrip=true), \"$((rows + 3))\": $(token '<r>' rstrip=true),
    \"$((rows + 4))\": $(token zoo single_word=true special=false normalized=true)}}"
source_folder special '{"additional_special_tokens": ["<x>", "ab"]}'
source_folder listed
printf '{"<y>": %d, "<x>": %d}' $((rows + 1)) "$rows" > listed/added_tokens.json
printf '{"additional_special_tokens": ["<x>"], "mask_token": %s}' "$(token '[MASK]' lstrip=true)" > listed/special_tokens_map.json
source_folder twice '{}'
sed -i '13s/.*/ab/' twice/vocab.txt
source_folder padded '{}'
head -n -3 "$golden/vocab.txt" > padded/vocab.txt
whole_folder replace --replace ascii
whole_folder words --max-word 5
whole_folder clean
sed -i 's/"clean_text": true/"clean_text": false/' clean/tokenizer.json
readings='plain lower cased strips accents ideographs added special listed twice padded replace words clean'

# ids FOLDER, tokens FOLDER: print what the folder's tokenizer makes of lines.txt (ids) or text.txt (tokens)
ids() { "$root/tokenize" --ids --recognise --vocab "$1" < lines.txt 2> /dev/null; }
tokens() { "$root/tokenize" --vocab "$1" < text.txt 2> /dev/null; }
# logit_ids FILE COUNT: prints the first COUNT ids of a file of logits; the ids are the first tensor in the file
logit_ids() {
    local length
    length=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    tail -c +$((9 + length)) "$1" | od -An -v -t u8 -w8 | tr -d ' ' | head -n "$2"
}
declare -A model=([univae]='max_length=8 latent_layers=1 latent_size=4 prior_sentences=0' [unilm]='max_length=16 max_target=6'
    [seq2seq]='max_length=16 max_target=6 decoder_layers=1' [insertion]='max_length=16 max_target=6 decoder_layers=1')
families=$("$root/inspect" models | awk '$1 ~ /^(univae|unilm|seq2seq|insertion)$/ { print $1 }' | sort -u)

seen=
for reading in $readings; do
    expected=$(ids "$reading")
    case $reading in lower | twice) is "$reading: reads as plain does" "$(ids plain)" "$expected" ;; *)
        is "$reading: reads as none before it" "" "$(grep -xF "$(md5sum <<< "$expected")" <<< "$seen")"
        seen+=$(md5sum <<< "$expected")$'\n' ;;
    esac
    "$root/inspect" checkpoint "$reading" --save "$reading.saved" --logits "$reading.logits" < text.txt > said 2>&1 || cat said
    is "$reading: ids of the folder that was saved" "$expected" "$(ids "$reading.saved")"
    recognise=--recognise
    [ "$reading" != plain ] || recognise=  # by the reference's rules, no text is a special token
    read_as=$("$root/tokenize" --ids --special $recognise --max-length 12 --vocab "$reading" < text.txt 2> /dev/null | tr ' ' '\n')
    is "$reading: ids of its logits" "$read_as" "$(logit_ids "$reading.logits" "$(wc -l <<< "$read_as")")"

    for family in $families; do
        run=$reading.$family
        data=pairs.txt; [ "$family" != univae ] || data=text.txt
        "$root/train" "$family" --init "$reading" --data $data --dev $data --out "$run" --steps 1 --threads 1 batch_tokens=64 \
            ${model[$family]} > said 2>&1 || cat said
        is "$run: ids of the run" "$expected" "$(ids "$run")"
        before=$(cat "$run"/vocab.txt "$run"/tokenizer.json 2> /dev/null | md5sum)
        "$root/train" --resume "$run" --steps 2 --threads 1 > said 2>&1 || cat said
        is "$run: its tokenizer after --resume" "$before" "$(cat "$run"/vocab.txt "$run"/tokenizer.json 2> /dev/null | md5sum)"
        case $family in univae | unilm)
            "$root/inspect" checkpoint "$run" --save "$run.saved" > said 2>&1 || cat said
            is "$run: ids of the folder that was saved from it" "$expected" "$(ids "$run.saved")" ;;
        esac
        "$root/train" "$family" --init "$reading" --data $data --dev $data --out "$run.kept" --steps 1 --threads 1 batch_tokens=64 \
            keep_tokens=true ${model[$family]} > said 2>&1 || cat said
        is "$run: tokens of a run with keep_tokens" "$(tokens "$reading")" "$(tokens "$run.kept")"
        is "$run: fewer of them" less "$([ "$(wc -l < "$run.kept/vocab.txt")" -lt "$(wc -l < "$run/vocab.txt")" ] && echo less)"
        # A run that starts with a run: its tokenizer is the one of that run.
        [ "$family" != unilm ] || {
            "$root/train" "$family" --init "$run.kept" --data $data --dev $data --out "$run.next" --steps 1 --threads 1 batch_tokens=64 \
                ${model[$family]} > said 2>&1 || cat said
            is "$run: ids of a run that starts with a run" "$(ids "$run.kept")" "$(ids "$run.next")"
        }
    done
done

# ---- vocabularies that need mending, and the command that does it ----
(echo '[UNK]'; echo '[PAD]'; tail -n +3 "$golden/vocab.txt") > vocab
source_folder second '{}'
cp vocab second/vocab.txt
train=("$root/train" unilm --data pairs.txt --dev pairs.txt --steps 1 --threads 1 batch_tokens=64 ${model[unilm]})
small='layers=1 width=8 heads=2 inner=8'
refuses '[PAD] in the second line' 1 './inspect checkpoint second --save DIR --tokens pad-first' "${train[@]}" --init second --out none
is 'no folder is left' no "$([ -e none ] && echo yes || echo no)"
"$root/inspect" checkpoint second --save mended --tokens pad-first > said 2>&1 || cat said
is '[PAD] is first' '[PAD]' "$(head -n 1 mended/vocab.txt)"
is 'tokens of the mended folder' "$(tokens second)" "$(tokens mended)"
"${train[@]}" --init mended --out mended-run > said 2>&1 || cat said
is 'ids of a run from it' "$(ids mended)" "$(ids mended-run)"
tail -n +2 "$golden/vocab.txt" > without
for file in vocab without; do
    message=$("${train[@]}" --vocab $file --out none $small 2>&1)
    is "$file: the command that mends it" 1 "$(grep -c "(echo '\[PAD\]'; grep -vxF '\[PAD\]' $file) >new-vocab.txt" <<< "$message")"
    (eval "$(grep -o '(echo.*' <<< "$message")")
    "${train[@]}" --vocab new-vocab.txt --out "$file.run" $small > said 2>&1 || cat said
    is "$file: training with what it makes" 0 $?
done
source_folder nopad '{}'
cp without nopad/vocab.txt
"$root/inspect" checkpoint nopad --save nopad.mended --tokens pad-first > said 2>&1 || cat said
is 'a folder without [PAD] gets one' '[PAD]' "$(head -n 1 nopad.mended/vocab.txt)"

# ---- notes ----
note() { is "$1" 1 "$("${@:3}" 2>&1 | grep -c "$2")"; }
note 'more rows than tokens: one note' "^note: padded: the vocabulary has $((rows - 3)) tokens and the embedding $rows rows: the first" \
    "${train[@]}" --init padded --out padded.run
note 'the same of --save' "the embedding $rows rows" "$root/inspect" checkpoint padded --save padded.again
is 'the saved model has a row for each token' "\"vocab_size\": $((rows - 3))" "$(grep -o '"vocab_size": [0-9]*' padded.again/config.json)"
sed -E 's/^([a-z])/\U\1/' "$golden/vocab.txt" > cased.txt
note 'a cased vocabulary' 'have capital ones, yet text is lower-cased' "${train[@]}" --vocab cased.txt --out cased.run $small
note 'the same with cased=true' "^vocabulary\|^text" "${train[@]}" --vocab cased.txt cased=true --out cased.run2 $small
is 'no note there' 0 "$("${train[@]}" --vocab cased.txt cased=true --out cased.run3 $small 2>&1 | grep -c 'lower-cased')"
"${train[@]}" --vocab strips --out folder.vocab-run $small > said 2>&1 || cat said
is 'a folder for --vocab brings its options' "$(ids strips)" "$(ids folder.vocab-run)"

[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp -r ./*.saved lines.txt "$KEEP"; }
finish tokenizers

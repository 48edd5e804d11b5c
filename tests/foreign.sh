#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests files that come from elsewhere:
#   - parts of two runs in one folder, for every family
#   - links and folders that somebody has planted under names that a program could use for temporary files
#   - tensors of types and ranks that the engine does not support
#   - tokenizers that are not BERT's
#   - folders of labelled texts
# Takes a few seconds on two cores.
. "$(dirname "$0")/command_line.sh"
build=$PWD/${BUILD:-build/release}
golden=$PWD/tests/golden/hugging_face
cd "$folder"
train() { timeout 60 "$build/train" --device cpu --threads 1 "$@"; }
generate() { timeout 60 "$build/generate" --device cpu --threads 1 "$@"; }
evaluate() { timeout 60 "$build/evaluate" --device cpu --threads 1 "$@"; }
for i in $(seq 30); do printf 'the red cup %s is here\tcup %s\n' $i $i; done > pairs.tsv
mkdir -p files/a files/b
for i in $(seq 40); do echo "$i is a" > files/a/$i; echo "b is $i" > files/b/$i; done

# ---- parts of two runs that differ only in their seed ----
small='layers=2 width=16 heads=2 inner=16 batch_tokens=100 max_length=16 vocabulary=64'
declare -A more=([univae]='latent_layers=1 latent_size=4' [seq2seq]=decoder_layers=1 [insertion]=decoder_layers=1)
families=$(families_of "$build/inspect")
for family in $families; do
    settings="$small ${more[$family]:-} --data pairs.tsv"
    [ "$family" != classify ] || settings="layers=1 width=16 heads=2 inner=16 batch_tokens=100 length=16 task=files"
    [ "$family" != flow ] || settings='flow_width=8 batch_rows=8 held_out=9'
    for seed in 1 2; do
        train "$family" $settings --steps 2 --seed $seed --out "$family.$seed" > said 2>&1 || cat said
    done
    for part in model state prior; do
        [ -e "$family.1/latest/$part.safetensors" ] || continue
        rm -rf mixed
        cp -r "$family.1" mixed
        cp "$family.2/latest/$part.safetensors" mixed/latest/
        reader='train --resume mixed --steps 4'
        [ $part != prior ] || reader='generate mixed --count 1'
        refuses "$family: $part.safetensors of another seed" 1 'mixed/step-000002/' $reader
    done
done

# ---- links planted under names that begin like those of temporary files ----
echo kept > victim
for name in o.tsv planted; do ln -s "$PWD/victim" ".new-$name"; done
evaluate unilm.1 --data pairs.tsv --limit 3 --outputs o.tsv > said 2>&1
is 'a planted link, a file: status' 0 $?
train lm $small --data pairs.tsv --steps 1 --out planted > said 2>&1
is 'a planted link, a folder: status' 0 $?
is 'what planted links lead to' kept "$(cat victim)"
is 'the folder is none of them' directory "$(stat -c %F planted)"
rm -rf .new-* o.tsv
mkdir -p .new-o.tsv/x
evaluate unilm.1 --data pairs.tsv --limit 3 --outputs o.tsv > said 2>&1
is 'a planted folder: status' 0 $?
is 'a planted folder: what was written' 3 "$(grep -vc '^#' o.tsv)"

# ---- tensors of a type or rank that the engine does not support ----
for tensor in 'F8_E4M3 [2,3] 6' 'C64 [2,2] 32' 'F32 [1,1,2,1,3] 24'; do
    read -r type shape bytes <<< "$tensor"
    rm -rf model && cp -r "$golden/bert_google" model && chmod -R u+w model
    python3 - model/model.safetensors "$type" "$shape" "$bytes" <<'PYTHON'
import json, struct, sys
path, dtype, shape, size = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
data = open(path, 'rb').read()
length = struct.unpack('<Q', data[:8])[0]
header, body = json.loads(data[8:8 + length]), data[8 + length:]
header['unused'] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(body), len(body) + size]}
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
open(path, 'wb').write(struct.pack('<Q', len(text)) + text + body + bytes(size))
PYTHON
    timeout 20 "$build/inspect" checkpoint model --save "saved.$type" > said 2>&1
    is "a tensor of $type $shape that is not used: status" 0 $?
    cmp -s "saved.$type/model.safetensors" saved.F8_E4M3/model.safetensors
    is "a tensor of $type $shape that is not used: the model" 0 $?
done

# ---- tokenizers that are not BERT's ----
# not_bert CLASS NAMED [JSON]: checks that the folder `model` is refused with a tokenizer of this class, and that the
# message contains NAMED, which is what is not supported
not_bert() {
    printf '{"tokenizer_class": "%s"%s}' "$1" "${3:+, $3}" > model/tokenizer_config.json
    refuses "$1" 1 "$2" timeout 20 "$build/tokenize" --vocab model
    refuses "$1, to start with" 1 "$2" train unilm --init model --data pairs.tsv --steps 1 --out none
    is "$1: no folder is left" no "$([ -e none ] && echo yes || echo no)"
}
rm -rf model && cp -r "$golden/bert_google" model && chmod -R u+w model
not_bert BertJapaneseTokenizer mecab '"word_tokenizer_type": "mecab"'
not_bert XLMRobertaTokenizer XLMRobertaTokenizer
not_bert GPT2Tokenizer GPT2Tokenizer
rm -rf model && cp -r "$golden/roformer_char" model && chmod -R u+w model
sed -i '13s/.*/中文/' model/vocab.txt
not_bert RoFormerTokenizer jieba

# ---- folders of labelled texts, and settings from other systems ----
classify='classify task=files layers=1 width=16 heads=2 inner=16 batch_tokens=100 length=16 --steps 2'
mkdir files/.git && cp files/a/* files/.git
train $classify --out hidden > said 2>&1
baselines() { evaluate "$1" 2> /dev/null | grep -E '^(baseline|questions)'; }
is 'a hidden folder is no class' "$(baselines classify.1)" "$(baselines hidden)"
mkdir files/empty
refuses 'an empty folder' 1 'files/empty' train $classify --out none
rmdir files/empty
mkdir -p elsewhere/files && cp -r files/a elsewhere/files/b && cp -r files/b elsewhere/files/a
is 'another working folder: the same texts' "$(baselines classify.1)" "$(cd elsewhere && baselines ../classify.1)"
for i in $(seq 40); do echo "$i is b" > files/a/$i; done  # as many bytes as before
refuses 'texts that have changed, in equal sizes' 1 'changed' evaluate classify.1
printf '\xef\xbb\xbflayers=1\r\nwidth=16\r\nheads=2\r\ninner=16\r\n' > windows
train lm vocabulary=64 --config windows --data pairs.tsv --steps 1 --out windows.run > said 2>&1 || cat said
is '--config with a byte-order mark and CRLF' 16 "$(grep -oE '"width": "?[0-9]+' windows.run/run.json windows.run/latest/config.json | grep -oE '[0-9]+$' | head -n 1)"
finish foreign

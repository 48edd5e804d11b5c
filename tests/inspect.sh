#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests ./inspect: what it prints for every kind of model, and what it refuses.
. "$(dirname "$0")/command_line.sh"
inspect() { ./inspect --threads 1 "$@"; }
# ops_of OP WORD...: prints how often the op occurs in the program of a model; WORD... are the model and its settings
ops_of() { inspect program "${@:2}" | awk -v op="$1" '/^#/ && $2 == op' | wc -l; }
# gradients NAME LEAST WORD...: checks that all gradients of a model agree with calculus, and that the model has at
# least LEAST parameters
gradients() {
    inspect gradients "${@:3}" > "$folder/gradients" 2>&1
    is "$1: status" 0 $?
    awk '$2 ~ /^\(/ { print $4 }' "$folder/gradients" > "$folder/errors"
    is "$1: parameters" "at least $2" "$(awk -v least="$2" 'END { print NR < least ? NR : "at least " least }' "$folder/errors")"
    is "$1: largest error" 'below 1e-11' \
        "$(awk '!($1 <= most) { most = $1 } END { print most < 1e-11 ? "below 1e-11" : most }' "$folder/errors")"
}

is 'without a name: UniVAE' "$(inspect program univae)" "$(inspect program)"
is 'univae: samples of latent layers' 3 "$(ops_of vmf_sample univae layers=5 latent_layers=3)"
is 'unilm: layers' 3 "$(ops_of attention unilm layers=3)"
is 'seq2seq: layers, and cross-attention' 7 "$(ops_of attention seq2seq layers=1 decoder_layers=3)"
for model in univae unilm seq2seq classify; do
    is "$model: one loss" 1 "$(ops_of cross_entropy $model)"
    is "$model: the sizes" 1 "$(inspect program $model width=48 | grep -c '^[0-9]* parameters; [0-9]* tokens are asked for')"
    is "$model: time" 1 "$(inspect program $model --time batch_tokens=200 | grep -c '^all .* ms a step')"
done
is 'objectives differ' 1 "$(inspect program unilm objective=mlm | grep -c 'gather_rows .* -> scored')"
is 'the same again' "$(inspect program seq2seq | cksum)" "$(inspect program seq2seq | cksum)"

# An op on numbers. tests/book/examples.py runs the examples of the pages.
is 'an op' 'y 1 4' "$(inspect op linear x=1,2 w=1,0/1,1 b=0,1 | xargs)"
is 'an op, backward' 'y 3 dx 1 1 dw 1 2' "$(inspect op linear x=1,2 w=1,1 dy=1 | xargs)"
is 'an op that updates: what has changed' 'p 0.9 m 0.05 v 0.005' "$(inspect op adamw p=1 g=0.5 m=0 v=0 norm=0.5 control=0.1,10,50 | xargs)"
is 'an op that names its positions after the table of angles' 'q 1 2 -1.745 4.686 kv 1 2 -1.745 4.686' \
    "$(inspect op query_key_value x=1,2/3,4 wq=1,0/0,1 wkv=1,0/0,1 turned=2 columns=2 | xargs)"
for columns in 0 -2 3 2147483647; do
    inspect op rotary x=1,2 positions=0 columns=$columns 2> "$folder/error"
    is "an op with columns=$columns" "2 error: inspect op rotary: columns=$columns: expected an even number from 2 to 65536" \
        "$? $(cat "$folder/error")"
done
inspect op rotary x=1,2 positions=2000000000 2> "$folder/error"
is 'a position that is too far' "2 error: inspect op rotary: positions: found 2000000000, expected 0 to 1000000" "$? $(cat "$folder/error")"
inspect op layernorm x=1,2 w=1,1 2> "$folder/error"
is 'a missing argument' "2 error: inspect op layernorm: b is missing; give it as b=1,2 or, for rows, b=1,2/3,4" "$? $(cat "$folder/error")"
inspect op layernorm x=1,2 w=1,1 b=0,0 dy=1,2,3 2> "$folder/error" > /dev/null
is 'a gradient of another shape' "2 error: inspect op layernorm: dy=1,2,3: expected the shape of y, (1,2)" "$? $(cat "$folder/error")"
inspect op tanh x=1 z=2 2> "$folder/error"
is 'an argument too many' "2 error: inspect op tanh: the op has no z; it has x, y" "$? $(cat "$folder/error")"
every='expected a whole number from -2147483648 to 2147483647'
refuses 'half a number where a whole one is expected' 2 "embedding: ids: found 0.9, $every" inspect op embedding ids=0.9 w=1,2/3,4
refuses 'a number that no int holds' 2 "embedding: ids: found 4294967296, $every" inspect op embedding ids=4294967296 w=1,2/3,4
refuses 'a number of columns' 2 "rotary: columns: found 2.5, $every" inspect op rotary x=1,2 columns=2.5
for heads in 1.9 -1 0 70000; do
    refuses "$heads heads" 2 'attention: heads: found '"$heads, expected a whole number from 1 to 65536" \
        inspect op attention q=1,2 kv=1,2,3,4 heads=$heads
done
dropped() { inspect "$@" op dropout x=1,2,3,4,5,6,7,8 rate=0.5; }
is 'an op that draws: the seed is 1 unless one is given' "$(dropped --seed 1)" "$(dropped)"
is 'an op that draws: another seed' differs "$([ "$(dropped --seed 2)" = "$(dropped)" ] || echo differs)"
inspect op coupling x=2,3 2> "$folder/error"
is 'a missing argument whose shape is not stated' 2 $?

inspect program unilm layers=1 --dump "$folder/dump" > "$folder/program"
is 'a dump' 0 $?
is 'a value for every line' "$(grep -c '^#' "$folder/program")" \
    "$(sed -n 's/^#.* -> \([^ ]*\) .*/\1/p' "$folder/program" | while read -r path; do ls "$folder/dump/$path.npy"; done | wc -l)"
is 'its program' "$(grep '^#' "$folder/program")" "$(grep '^#' "$folder/dump/program.txt")"

gradients univae 60 univae
gradients 'settings alone: univae' 60 latent=gaussian dropout=0.1
gradients 'univae, diffusion' 60 univae decoder=diffusion latent=gaussian dropout=0.1 attention_dropout=0.1
gradients 'a language model' 60 univae latent_layers=0
for objective in mlm lm lm-target lm-reverse prefix-lm unilm unilm-reverse unilm-masked plm pmlm \
    diffusion block-diffusion any-order gaps k-bert plm-shuffled; do
    gradients "unilm, $objective" 30 unilm objective=$objective dropout=0.1 attention_dropout=0.1
done
gradients 'unilm, other forms' 30 unilm pre_norm=true rotary=false embedding=16 label_smoothing=0.1
gradients 'unilm, wider' 60 unilm layers=4 width=48 heads=4 gelu=tanh
gradients seq2seq 60 seq2seq
gradients classify 30 classify
# Rounding errors of a gradient that is small only because its parts cancel.
gradients 'a flow of two latents' 30 univae layers=2 width=2 heads=1 inner=3 latent_layers=1 latent=flow latent_size=2 flow_actnorm=true flow_linear=lu
gradients flow 14 flow flow_steps=2 flow_width=8 batch_rows=16
gradients 'classify, asked anywhere' 30 classify task=recall pairs=2 length=12
gradients 'seq2seq, diffusion' 60 seq2seq objective=diffusion dropout=0.1 attention_dropout=0.1
gradients 'seq2seq, mass' 60 seq2seq objective=mass pre_norm=true rotary_cross=false dropout=0.1
# Tries every kind of attention in every family. If the table has x for this kind and all masks of the family, the
# gradients must be right. Otherwise a step must refuse the mask. Each line below has a family (with settings, after
# commas), and the masks, rows of the table, that the family uses.
masks='univae univae-encoder univae-lower univae-upper
pairs=true univae-encoder univae-lower univae-upper
latent_layers=0 univae-lower
unilm unilm
lm lm
lm-reverse lm-reverse
mlm mlm
plm plm-streams
pmlm pseudo-mask
k-bert k-bert
seq2seq encoder decoder cross
seq2seq,objective=diffusion encoder cross
insertion encoder cross
insertion-one-stack insertion
diffusion insertion
block-diffusion block-diffusion
classify bert'
small='width=8 heads=2 inner=8 batch_tokens=24 layers=2 slots=4 features=4 reach=2 window=2 stride=2 chunk=4 buckets=4'
inspect attention > "$folder/table"
sed -n '/^$/q; s/^\([A-Z]\) \([a-z_]*\) .*/\1 \2/p' "$folder/table" > "$folder/kinds"
# honours KIND MASK: succeeds if the table has x for this kind and mask
honours() {
    awk -v kind="$1" -v mask="$2" 'NR == FNR { if ($2 == kind) letter = $1; next }
        $1 == "mask" { for (i = 2; i <= NF; i++) if ($i == letter) column = i }
        $1 == mask && NF > 10 { found = 1; good = $column == "x" }
        END { exit !(found && good) }' "$folder/kinds" "$folder/table"
}
is 'kinds of attention' 16 "$(wc -l < "$folder/kinds")"
while read -r words of; do
    words=${words//,/ }
    more=
    case "$words" in univae | pairs=*) more='latent_layers=1 latent_size=4 vocabulary=64 max_length=8' ;; classify) ;; *) more='vocabulary=64 max_length=8' ;; esac
    while read -r _ kind; do
        expected=0
        for mask in $of; do honours "$kind" "$mask" || expected=2; done
        inspect gradients $words $small $more attention="$kind" > "$folder/gradients" 2>&1
        is "gradients of $words, attention=$kind: status" $expected $?
        [ $expected = 2 ] && is "$words, attention=$kind: is refused by its mask" 1 "$(grep -cE '^error: attention [a-z_]+ does not support (this mask|latents): ' "$folder/gradients")"
    done < "$folder/kinds"
done <<< "$masks"
while read -r words; do
    inspect gradients $words $small vocabulary=64 max_length=8 attention='A lsh; B softmax | layers 1:: A window; B linear' > "$folder/gradients"
    is "gradients of $words, kinds by layer and part: status" 0 $?
done << 'end'
univae latent_layers=1 latent_size=4
unilm
seq2seq decoder_layers=2
end
inspect gradients layernorm > "$folder/gradients"
is 'ops: status' 0 $?
is 'ops: those whose names begin so' 'layernorm' "$(awk '/e-/ && NF == 5 { print $1 }' "$folder/gradients" | sort -u)"

is 'a mask in words, as by its name' "$(inspect mask uniae | tail -n +2)" "$(inspect mask 'A full; B causal sees A[0]' | tail -n +2)"
inspect mask unilm --source 4 --target 3 --svg "$folder/mask.svg"
is 'a mask as a picture: a field for each pair, as many dark as there are seen' '49 34' \
    "$(grep -c '<rect x=' "$folder/mask.svg") $(grep -c 2b5d8a "$folder/mask.svg")"
is 'a mask as a picture: well-formed' 0 "$(python3 -c "import xml.dom.minidom, sys; xml.dom.minidom.parse('$folder/mask.svg')" > /dev/null 2>&1; echo $?)"
refuses 'a picture of no mask' 2 'give its name or its words' inspect mask --svg "$folder/mask.svg"
./train flow points=rings held_out=20 --steps 2 --threads 1 --device cpu --out "$folder/flow" > /dev/null 2>&1
inspect report "$folder/flow" --out "$folder/flow.html" > /dev/null 2>&1
is 'report of a flow: curves, points and density' '2 1' \
    "$(grep -c 'held-out vectors and samples\|title>density' "$folder/flow.html") $(grep -c 'fill-opacity' "$folder/flow.html")"
mkdir -p "$folder/run/step-000002"
printf '{"step":%d,"loss":%d,"kl":1}\n' 1 5 2 4 3 3 > "$folder/run/log.jsonl"
printf '{"step":4,"lo' >> "$folder/run/log.jsonl"
if command -v gnuplot > /dev/null; then
    is 'curves: two numbers' "drew 2 plots into $folder/c.svg" "$(inspect plot "$folder/run" --out "$folder/c.svg" 2>&1 | tail -n 1)"
    is 'curves: are there' 1 "$(grep -c '</svg>' "$folder/c.svg")"
    refuses 'curves: a number that is not' 2 '--numbers: no log has lsos; there are kl, loss, step' inspect plot "$folder/run" --numbers lsos --out "$folder/c.svg"
fi
# A program in gnuplot's place, whose picture is the text that it is given.
mkdir "$folder/bin"
printf '#!/bin/sh\ncat\necho "</svg>"\n' > "$folder/bin/gnuplot"
chmod +x "$folder/bin/gnuplot"
mkdir -p "$folder/both/step-000002"
printf '%s\n' '{"step":10,"held_out_loss":9}' '{"step":20,"tokens":200,"loss":5}' '{"step":30,"held_out_loss":8}' \
    '{"step":40,"tokens":600,"loss":4}' '{"step":40,"held_out_loss":7}' '{"step":50,"held_out_loss":6}' > "$folder/both/log.jsonl"
PATH=$folder/bin:$PATH inspect plot "$folder/both" --over tokens --out "$folder/c.svg" > "$folder/log" 2>&1
is 'curves over tokens: held-out numbers stand between the lines of training, and beyond the last' \
    '100 9 400 8 600 7 800 6 e 200 5 600 4 e' "$(grep -E '^([0-9. ]+|e)$' "$folder/c.svg" | xargs)"
PATH=$folder/bin:$PATH refuses 'curves over what the log has not' 1 'holds no number over seconds' \
    inspect plot "$folder/both" --over seconds --out "$folder/c.svg"
refuses 'curves: no picture' 2 'ends neither in .svg nor in .png' inspect plot "$folder/run" --out "$folder/c.txt"
# ---- pictures of a step ----
inspect program --memory "$folder/m.svg" --timeline "$folder/t.json" > "$folder/log"
blocks=$(grep -c '<rect x' "$folder/m.svg")
is 'memory: a block for each, values and gradients' 1 "$((blocks > 100 && $(grep -c c2571a "$folder/m.svg") > 30))"
is 'memory: blocks have the names of tensors' 2 "$(grep -c '<title>decoder.layer.0.attention.query, ' "$folder/m.svg")"
records=$(grep -cE '^#[0-9]+ ' "$folder/log")
is 'timeline: an event for each op, forward' "$records" "$(grep -o '"cat":"forward"' "$folder/t.json" | wc -l)"
is 'timeline: as whole numbers of events as it says' "$(grep -o '"ph":"X"' "$folder/t.json" | wc -l)" "$(grep -o '"dur":[0-9.]*' "$folder/t.json" | wc -l)"
# same_as_book FILE COMMAND...: checks that the command, whose last word is its output, writes the same picture as
# docs/pictures/FILE
same_as_book() { inspect "${@:2}" > "$folder/log"; cmp -s "${!#}" "docs/pictures/$1"; is "the book's $1: inspect ${*:2}" 0 $?; }
same_as_book univae-lower.svg mask independent --source 4 --target 4 --svg "$folder/p.svg"
same_as_book univae-upper.svg mask uniae --source 4 --target 4 --svg "$folder/p.svg"
same_as_book memory.svg program --memory "$folder/p.svg"
if command -v dot > /dev/null; then
    inspect program unilm --graph "$folder/g.svg" > "$folder/log"
    is 'graph: a box for each op' "$(grep -cE '^#[0-9]+ ' "$folder/log")" "$(grep -c 'class="node"' "$folder/g.svg")"
    is 'graph: lines that bring gradients back, and scopes' 1 "$(($(grep -c 'stroke="#2b5d8a"' "$folder/g.svg") > 20 && $(grep -c 'class="cluster"' "$folder/g.svg") > 8))"
fi
refuses 'memory: no plan' 2 'plan_memory=false makes none' inspect program plan_memory=false --memory "$folder/none.svg"
for option in --time "--timeline $folder/none.json"; do
    refuses "$option of ops whose values are written" 2 'cannot be combined' inspect program $option --dump "$folder/none"
done
is 'what is refused writes nothing' '' "$(ls -d "$folder"/none* 2> /dev/null)"
refuses 'graph: no picture' 2 'ends neither in .svg nor in .png' inspect program --graph "$folder/g.txt"
for i in $(seq 60); do printf 'the %d cats see %d <dogs>\t<b>%d\n' $((i % 7)) $((i % 5)) $((i % 2)); done > "$folder/labelled.txt"
cut -f 1 "$folder/labelled.txt" > "$folder/lines.txt"
small='layers=3 width=16 heads=2 inner=32 vocabulary=80'
./train univae $small latent_size=4,6 latent_at=1,2 --steps 6 --threads 1 --data "$folder/lines.txt" --out "$folder/univae" > "$folder/log" 2>&1
./train lm $small --steps 6 --threads 1 --data "$folder/lines.txt" --out "$folder/lm" > "$folder/log" 2>&1
inspect report "$folder/univae" --data "$folder/labelled.txt" --limit 20 --out "$folder/r.html" 2> "$folder/log"
is 'a page on a run: status' 0 $?
is 'a page on a run: a point for each sentence in each picture' 60 "$(grep -o '<circle' "$folder/r.html" | wc -l)"
is 'a page on a run: sections' 10 "$(grep -o '<section>' "$folder/r.html" | wc -l)"
is 'a page on a run: two colours, and words as they stand' '2 0' \
    "$(grep -o '<circle[^>]*fill="[^"]*"' "$folder/r.html" | sed 's/.*fill=//' | sort -u | wc -l) $(grep -c '<b>\|<dogs>' "$folder/r.html")"
is 'a page on a run: nothing from elsewhere' 0 "$(grep -o 'src=\|href=' "$folder/r.html" | wc -l)"
inspect report "$folder/lm" --out "$folder/r.html" 2> "$folder/log"
is 'a page on a run without latents: settings, curves and attention' 3 "$(grep -o '<section>' "$folder/r.html" | wc -l)"
for run in lm flow; do
    refuses "a page on $run: --data" 2 'gives the sentences of a univae with latents' inspect report "$folder/$run" --data "$folder/none" --out "$folder/none.html"
done
refuses 'a page on a run: no such file' 1 "$folder/none" inspect report "$folder/univae" --data "$folder/none" --out "$folder/none.html"
refuses 'a page on no run' 1 'none' inspect report "$folder/none"
# ---- attention maps: which row reads which ----
# maps FILE: prints a line for each attention: its path, how many rows and fields its mean map has, and how many rows do
# not sum to 1 within rounding
maps() {
    python3 - "$1" <<'END'
import re, sys
for svg in re.findall(r'<svg.*?</svg>', open(sys.argv[1]).read(), re.S):
    sums, fields = {}, re.findall(r'<rect [^>]*? y="([^"]*)"[^>]*><title>[^<]* reads [^<]*: ([0-9.]*)<', svg)
    for y, p in fields: sums.setdefault(y, []).append(float(p))
    if fields: print(re.search('<title>([^,<]*)', svg)[1], len(sums), len(fields), sum(abs(sum(s) - 1) > 0.005 * len(s) + 1e-9 for s in sums.values()))
END
}
printf 'dogs see\t<b>0\n' | cat - "$folder/labelled.txt" > "$folder/first.txt"
inspect report "$folder/univae" --data "$folder/first.txt" --limit 20 --out "$folder/r.html" 2> "$folder/log"
is 'a page on a run: the attention in the first line of the file' 'encoder.layer.0.attention 4' "$(maps "$folder/r.html" | head -n 1 | cut -d ' ' -f 1,2)"
inspect attention "$folder/univae" --text 'the 1 cats see' --out "$folder/a.html" 2> "$folder/log"
is 'attention of a univae: status' 0 $?
n=$(maps "$folder/a.html" | awk 'NR == 1 { print $2 }') m=$((n - 1)) # n rows of the encoder, m of the decoder
is 'attention of a univae: the maps have the rows and fields of its masks, and each row sums to 1' \
    "encoder.layer.0.attention $n $((n * n)) 0 encoder.layer.1.attention 1 $n 0 decoder.layer.0.attention $m $((m * n / 2)) 0
decoder.layer.1.attention $m $((m * n / 2 + m)) 0 decoder.layer.2.attention $m $((m * n / 2 + m)) 0" "$(maps "$folder/a.html" | paste -sd ' ' | sed 's/ decoder.layer.1/\ndecoder.layer.1/')"
is 'attention of a univae: the latent is named by its row' $((2 * m)) "$(grep -o 'reads memory \[CLS\]' "$folder/a.html" | wc -l)"
is 'attention of a univae: two heads beside each mean' 10 "$(grep -o '<title>head' "$folder/a.html" | wc -l)"
inspect attention "$folder/lm" --out "$folder/a.html" 2> "$folder/log"
is 'attention of a line that the run held out' 1 "$(grep -c '<h1>Attention: the . cats see' "$folder/a.html")"
rm "$folder/a.html"
for model in $(inspect models | sed -n 's/, / /g; s/^ *objectives: //p; s/^\([a-z]\+\) .*/\1/p' | xargs -n1 | sort -u); do
    [ "$model" = flow ] && continue  # no attention
    ./train "$model" width=16 heads=2 inner=32 layers=5 --steps 2 --threads 1 --data "$folder/labelled.txt" --out "$folder/of" > "$folder/log" 2>&1 ||
        ./train "$model" width=16 heads=2 inner=32 layers=5 --steps 2 --threads 1 --out "$folder/of" > "$folder/log" 2>&1  # makes its examples itself
    inspect attention "$folder/of" --out "$folder/a.html" 2> "$folder/log"
    is "attention of $model: maps, and rows that do not sum to 1" '1 0' "$(maps "$folder/a.html" | awk '{ wrong += $4 } END { print (NR > 0), wrong + 0 }')"
    rm -rf "$folder/of" "$folder/a.html"
done
./train lm $small attention=linear --steps 2 --threads 1 --data "$folder/lines.txt" --out "$folder/linear" > "$folder/log" 2>&1
refuses 'attention of no run' 2 '--text needs RUN: give both' inspect attention --text abc
./train seq2seq width=16 heads=2 inner=32 layers=1 --steps 1 --threads 1 --data "$folder/labelled.txt" --out "$folder/pairs" > "$folder/log" 2>&1
refuses 'attention of half a pair' 2 'reads pairs; expected source<TAB>target' inspect attention "$folder/pairs" --text abc
refuses 'attention without probabilities' 2 'its kind of attention has no probabilities to draw' inspect attention "$folder/linear" --out "$folder/a.html"
refuses 'a window that reaches too far' 2 'window=50000 dilation=50000 reaches 2500000000 rows' \
    inspect mask 'A full window=50000 dilation=50000' --source 4 --target 0
refuses 'a mask in words that say nothing' 2 'mask "A ful": "ful" is no rule; expected full, causal' inspect mask 'A ful'
refuses 'a place that no number holds' 2 '"-99999999999999999999" is no place' inspect mask 'A full; B causal sees A[-99999999999999999999]'
refuses 'a mask in words without B' 2 '5 rows of part B, which is not named' inspect mask 'A full'
refuses 'a mask without a name' 2 'unknown mask unlm; there are bert, mlm' inspect mask unlm

models=$(./inspect models | grep -oE '^[a-z0-9_]+' | paste -sd, | sed 's/,/, /g')
refuses 'a model that is not' 2 "there is no model zzzzzz; there are $models" inspect program zzzzzz
refuses 'a model that is nearly one' 2 "there is no model bert; did you mean k-bert?" inspect program bert
refuses 'an op that is not' 2 "no op and no model of the name bert; the nearest ops are gelu, add, convert; engine/ops/ops.h has all; models: $models" \
    inspect gradients bert
refuses 'an op that is nearly one' 2 'of the name laxernorm; the nearest ops are layernorm, ' inspect gradients laxernorm
refuses 'a setting that is not' 2 'unknown setting wdith; did you mean width?' inspect program unilm wdith=64
refuses 'a setting of another model' 2 'unknown setting decoder_layers' inspect gradients unilm decoder_layers=2
refuses 'a size that cannot be' 2 'width 5 does not divide into 2 heads' inspect program seq2seq width=5
refuses 'an objective that is not' 2 'there is no objective unlm of this model; there are mlm, lm' inspect gradients unilm objective=unlm
refuses 'two models' 2 'seq2seq is neither a model, which comes first' inspect program unilm seq2seq
finish inspect

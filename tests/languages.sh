#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An uncased run of every family that writes targets learns pairs by heart. The targets have capitals and accents, and
# scripts of all kinds. The run must then write exactly the targets that it was given. Takes twenty seconds.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"
cat > pairs.tsv << 'END'
one ru	Ёлка стоит в Йошкар-Оле, и снег идёт.
two ru	Чей это Дом? Мой!
one de	Die Österreicher grüßen Übermütige.
two de	Käse, Öl und Brötchen für Jürgen.
one fr	Où est l'École Française?
two fr	Çà et là, Noël à la crêperie.
one vi	Tôi học Tiếng Việt ở Đà Nẵng.
two vi	Cảm Ơn bạn rất nhiều.
one hi	हिन्दी की किताब अच्छी है।
two hi	मैं दिल्ली में रहता हूँ।
one ko	한국어를 공부합니다.
two ko	서울은 큰 도시입니다!
one el	Ο ΟΔΥΣΣΕΑΣ είναι εδώ.
one zh	我们学习机器翻译。
one tr	İstanbul IŞIK Ağaç.
END
lines=$(wc -l < pairs.tsv)
# The vocabulary: every character of the pairs, as an uncased run reads it, once for the start of a word and once for
# the inside.
python3 - > vocab.txt << 'END'
import unicodedata
text = "".join(c for c in unicodedata.normalize("NFD", open("pairs.tsv", encoding="utf-8").read().lower()) if unicodedata.category(c) != "Mn")
letters = sorted(set(text) - set(" \t\n") | set("ςσ"))
print(*("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), *letters, *("##" + c for c in letters), sep="\n")
END
small="width=48 heads=2 inner=96 layers=2 decoder_layers=2 latent_layers=1 latent_size=24 kappa=1000 max_length=64 max_target=64
       batch_tokens=2000 learning_rate=0.004 warmup=20 order=left_to_right canvases=4 content_location=joint prior_sentences=0 pre_norm=true save_every=1000 keep=1"
# value KEY: prints the number of this key in the last table
value() { awk -v key="$1" '$1 == key { print $2 }' table; }

families=0
for model in $(families_of "$root/inspect"); do
    [ "$model" = flow ] && continue  # flow reads no text
    settings= keys=" $(settings_of "$root/train" $model | tr '\n' ' ')"
    known() { [[ $keys == *" $1 "* ]]; }  # known KEY: succeeds if the family has this setting
    for setting in $small; do known "${setting%%=*}" && settings="$settings $setting"; done
    known pairs && known latent && settings="$settings pairs=true"
    "$root/train" --device cpu $model $settings --data pairs.tsv --dev pairs.tsv --vocab vocab.txt --precision f32 --steps 400 --out $model > log 2> error ||
        { is "$model: reads no pairs" 1 "$(grep -c 'generates its own examples' error)"; continue; }
    families=$((families + 1))
    "$root/evaluate" --device cpu $model --data pairs.tsv > table 2> error
    is "$model: status" 0 $?
    is "$model: all that was learned is exact" 100.000 "$(value exact)"
    [ -n "$(value rouge1)" ] || continue  # without rouge1, the measures compare tokens, not words
    is "$model: BLEU" 100.000 "$(value bleu)"
    is "$model: lengths" '100.000 1.000' "$(value same_length) $(value length_ratio)"
    "$root/evaluate" --device cpu $model --data pairs.tsv --outputs outputs.tsv --characters > table 2> error
    is "$model: references as they are, and as they are read" "$lines $lines" \
        "$(cut -f 3 outputs.tsv | paste - <(cut -f 2 pairs.tsv) | awk -F '\t' '$1 == $2' | wc -l) $(awk -F '\t' '$2 == $4' outputs.tsv | wc -l)"
    is "$model: BLEU and ROUGE over characters" '100.000 100.000 100.000' "$(value bleu) $(value rouge1) $(value rougeL)"
done
is 'families that write targets' 'four or more' "$([ $families -ge 4 ] && echo four or more || echo $families)"
finish languages

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# orders.sh FOLDER [PATTERN ...]: trains and measures the models of docs/results/orders.md, one after the other.
#     docs/results/orders.sh orders 'sudoku-*' 'easy-any-order-2'    # those whose names TASK-ORDER-SEED match a pattern
#     docs/results/orders.sh orders table                            # a line of the tables for each way of writing
# What FOLDER holds already is not repeated, so the work can be stopped and continued; several calls can share FOLDER if
# their patterns have no name in common. For the translations (german-*), FOLDER must hold the pairs
# s2s-eng-deu/train.tsv and s2s-eng-deu/dev.tsv.
# shellcheck disable=SC2053,SC2086
set -euo pipefail
here=$PWD
cd "$1" && shift

if [ "${1:-}" = table ]; then
    cat ./*.measured | awk -F '\t' '
        { split($1, name, / /); key = name[1]; sub(/-[0-9]+$/, "", key); key = key substr($1, length(name[1]) + 1)
          if (!(key in n)) keys[++count] = key
          i = ++n[key]; passes[key] += $2; value[key, i] = $3 }
        END {
            for (k = 1; k <= count; k++) {
                key = keys[k]; m = n[key]; sum = squares = 0; each = ""
                for (i = 1; i <= m; i++) {
                    sum += value[key, i]
                    each = each (i > 1 ? ", " : "") sprintf("%.1f", value[key, i])
                }
                mean = sum / m
                for (i = 1; i <= m; i++) squares += (value[key, i] - mean) ^ 2
                half = m == 3 ? 4.3027 * sqrt(squares / (m - 1) / m) : 0   # Student, two degrees of freedom
                printf "| %s | %.1f | %s | %.1f [%.1f, %.1f] |\n", key, passes[key] / m, each, mean, mean - half,
                       mean + half
            }
        }'
    exit
fi

how="--threads 1 --device cpu --minutes 0"
sudoku="task=sudoku grid=6 layers=4 width=128 inner=512 heads=4 dropout=0 batch_tokens=4000 warmup=200 --steps 1000"
german="--data s2s-eng-deu/train.tsv --dev s2s-eng-deu/dev.tsv width=64 heads=4 inner=256 max_length=32 max_target=32"
german="$german pre_norm=true warmup=200 learning_rate=3e-3 batch_tokens=1000 --steps 12000"
graphs="task=star_graph heads=4 pre_norm=true warmup=300 batch_tokens=3000 width=64 inner=256"

# measure NAME "OPTIONS": appends a line to NAME.part: name and options, passes, and the exact targets in percent (of
# translations: BLEU).
measure() {
    local data=() word=exact
    case $1 in german-*) data=(--data s2s-eng-deu/dev.tsv) word=bleu ;; esac
    "$here/evaluate" "$1" "${data[@]}" --limit 1000 --threads 1 $2 > "$1.said"
    printf '%s%s\t%s\t%s\n' "$1" "${2:+ $2}" "$(awk '$1 == "passes" { print $2 }' "$1.said")" \
        "$(awk -v word=$word '$1 == word { print $2 }' "$1.said")" >> "$1.part"
}
# wanted NAME: whether a pattern asks for this model, and it is not there yet.
wanted() {
    local pattern
    [ ! -e "$1.measured" ] || return 1
    for pattern in "${patterns[@]}"; do [[ $1 != $pattern ]] || return 0; done
    return 1
}
# model NAME "SETTINGS" "OPTIONS" ...: trains a model, and writes with each of the options.
model() {
    local name=$1 options
    wanted "$name" || return 0
    rm -rf "$name" "$name.part"
    "$here/train" $2 $how --seed $seed --out "$name"
    for options in "${@:3}"; do measure "$name" "$options"; done
    mv "$name.part" "$name.measured"
}
# star NAME START "SETTINGS" "OPTIONS" ...: the same for star graphs of $level. The model starts from START, which has
# learned to read the edges, with one stack or two.
star() {
    local start=$level-$2-$seed settings="seq2seq $two"
    wanted "$level-$1-$seed" || return 0
    [ "$2" = edges ] || settings="unilm layers=4"
    [ -e "$start.trained" ] || {
        rm -rf "$start"
        "$here/train" $settings $graphs level=$level learning_rate=3e-3 --steps 1000 $how --seed $seed --out "$start"
        touch "$start.trained"
    }
    model "$level-$1-$seed" "$3 $graphs level=$level learning_rate=2e-3 --init $start --steps 4000" "${@:4}"
}

patterns=("${@:-*}")
two="layers=2 decoder_layers=2"
diffusion=('' '--order random' '--threshold 0.99' '--threshold 0.9')
for seed in 1 2 3; do
    s="$sudoku label_smoothing=0"
    model sudoku-left-to-right-$seed "unilm objective=unilm $s" '' '--beam 4'
    model sudoku-right-to-left-$seed "unilm objective=unilm-reverse $s" '' '--beam 4'
    model sudoku-any-order-$seed "unilm objective=any-order $s" "${diffusion[@]}"
    model sudoku-diffusion-$seed "unilm objective=diffusion $s" "${diffusion[@]}" '--order margin' '--order entropy' \
        '--entropy-bound 0.1' '--steps 9 --order confidence' '--steps 4 --order confidence'
    model sudoku-gaps-$seed "unilm objective=diffusion:2,gaps:1 canvas=drawn $s" "${diffusion[@]}"
    for block in 4 8 12; do
        model sudoku-blocks-of-$block-$seed "unilm objective=block-diffusion block=$block $s" "${diffusion[@]}"
    done
    for order in binary_tree uniform; do
        model sudoku-insertion-$order-$seed "insertion objective=insertion-one-stack order=$order $sudoku" '' \
            '--parallel'
    done

    g="$german label_smoothing=0.1"
    model german-left-to-right-$seed "seq2seq $g $two" '' '--beam 4'
    model german-right-to-left-$seed "seq2seq objective=seq2seq-reverse $g $two" '' '--beam 4'
    model german-diffusion-$seed "seq2seq objective=diffusion canvas=drawn $german $two" '' '--lengths 4' \
        '--order random' '--threshold 0.9' '--threshold 0.5' '--steps 4' '--steps 2'
    model german-gaps-$seed "seq2seq objective=diffusion:2,gaps:1 canvas=drawn $german $two" '' '--lengths 4' \
        '--threshold 0.5' '--steps 4'
    for order in binary_tree uniform; do
        model german-insertion-$order-$seed "insertion order=$order content_location=joint $german $two" '' \
            '--parallel' '--parallel --end-penalty 2'
    done
    model german-one-stack-$seed "unilm $g layers=4" '' '--beam 4'
    model german-any-order-$seed "unilm objective=any-order $german layers=4" '' '--lengths 4' '--threshold 0.5' \
        '--steps 4'
    model german-one-stack-diffusion-$seed "unilm objective=diffusion canvas=drawn $german layers=4" '' \
        '--threshold 0.5' '--steps 4'
    for block in 4 8; do
        model german-blocks-of-$block-$seed "unilm objective=block-diffusion block=$block $german layers=4" '' \
            '--threshold 0.5' '--per-pass 2' '--per-pass 4'
    done

    for level in easy medium hard; do
        star left-to-right edges "seq2seq $two" '' '--beam 4'
        star right-to-left edges "seq2seq objective=seq2seq-reverse $two" '' '--beam 4'
        star diffusion edges "seq2seq objective=diffusion canvas=drawn $two" '' '--order random'
        star gaps edges "seq2seq objective=diffusion:2,gaps:1 canvas=drawn $two" '' '--order random'
        for order in binary_tree uniform; do
            star insertion-$order edges "insertion order=$order content_location=joint canvases=4 $two" '--parallel'
        done
        star one-stack edges-of-one-stack "unilm layers=4" '' '--beam 4'
        star any-order edges-of-one-stack "unilm objective=any-order layers=4" '' '--order random'
        for block in 4 8; do
            star blocks-of-$block edges-of-one-stack "unilm objective=block-diffusion block=$block layers=4" '' \
                '--order random'
        done
    done
done

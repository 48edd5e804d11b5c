#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests models that write targets for sources, as a user meets them: ./train unilm and ./train seq2seq on pairs that are
# made here, then ./generate and ./evaluate. Also tests what they refuse, and in which words. Takes a quarter of a
# minute on two cores.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"
train() { "$root/train" --device cpu "$@"; }
generate() { "$root/generate" --device cpu "$@"; }
evaluate() { "$root/evaluate" --device cpu "$@"; }

# Pairs such as "the red cup is made of tin" -> "tin red cup", for all 6 x 6 x 3 combinations. One in twelve is held
# out.
awk 'BEGIN { split("red blue green white black grey", c); split("box cup lamp ring bell door", t); split("oak tin clay", m)
             for (i = 1; i <= 6; i++) for (j = 1; j <= 6; j++) for (k = 1; k <= 3; k++)
                 printf "the %s %s is made of %s\t%s %s %s\n", c[i], t[j], m[k], m[k], c[i], t[j] }' > all.tsv
awk 'NR % 12 != 5' all.tsv > pairs.tsv
awk 'NR % 12 == 5' all.tsv > held_out.tsv
cut -f 1 held_out.tsv > sources.txt
cut -f 2 held_out.tsv > targets.txt
cut -f 1 pairs.tsv > sentences.txt
small="width=32 heads=2 inner=64 vocabulary=200 batch_tokens=300 max_length=16 max_target=8
       warmup=10 schedule_start=100 schedule_steps=500"
on_pairs="--data pairs.tsv --dev held_out.tsv"

# lines FILE: prints the log of a run without clock times
lines() { grep -oE '"step":[0-9]+|"(loss|held_out_loss|norm)":[^,}]*' "$1"; }
# same_run NAME RUN RUN STEP: checks that both runs have the same bits at this step, and the same log
same_run() {
    local file
    for file in model.safetensors state.safetensors config.json; do
        cmp -s "$2/step-$4/$file" "$3/step-$4/$file"
        is "$1: $file" 0 $?
    done
    is "$1: log" "$(lines "$2/log.jsonl")" "$(lines "$3/log.jsonl")"
}

for model in unilm seq2seq; do
    layers=layers=2
    [ $model = seq2seq ] && layers='layers=1 decoder_layers=1'

    # ---- training ----
    train $model $small $layers $on_pairs --precision f32 --steps 400 --out $model > report 2> error
    is "$model: status" 0 $?
    is "$model: nothing on standard error" '' "$(cat error)"
    is "$model: text" 1 "$(grep -c '99 pairs to train on, 9 held out' report)"
    is "$model: end" 1 "$(grep -c "^done after 400 steps, saved in $model\$" report)"
    is "$model: no terminal, no carriage returns and colours" 0 "$(grep -c $'[\r\033]' report)"
    is "$model: what is written for held-out sources" 4 "$(grep -c '^      > ' report)"
    is "$model: run folder" 'best latest log.jsonl run.json samples.txt step-000400 vocab.txt' "$(ls $model | xargs)"

    for precision in f32 bf16; do
        for run in straight halves; do
            steps=30; [ $run = halves ] && steps=11
            train $model $small $layers $on_pairs --precision $precision dropout=0.1 label_smoothing=0.1 save_every=11 \
                --steps $steps --threads 2 --out $run-$model-$precision > /dev/null
        done
        train --resume halves-$model-$precision --steps 30 --threads 1 > report
        is "$model, $precision: resumed" 1 "$(grep -c '^done after 30 steps' report)"
        is "$model, $precision: run.json has the commands, dates and commits of the start and of the resume" \
            "$root/train $root/train 2 $(cat "$root/${BUILD:-build/release}/commit")" \
            "$(python3 -c '
import json, re, sys
start = json.load(open(sys.argv[1]))
both = [start, start["resumed"][0]]
dates = [x for x in both if re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", x["date"])]
commits = {x.get("commit", "") for x in both}
print(*[x["command"].split()[0] for x in both], len(dates), *commits)' halves-$model-$precision/run.json)"
        same_run "$model, $precision: 30 steps == 11 and 19 more" straight-$model-$precision \
            halves-$model-$precision 000030
    done

    # ---- writing ----
    generate $model < sources.txt > greedy
    is "$model: greedy" 0 $?
    is "$model: has learned it" "$(cat targets.txt)" "$(cat greedy)"
    is "$model: a beam" "$(cat targets.txt)" "$(generate $model --beam 4 < sources.txt)"
    is "$model: a step of the run" "$(cat greedy)" "$(generate $model/step-000400 < sources.txt)"
    is "$model: threads" "$(cat greedy)" "$(generate $model --threads 3 < sources.txt)"
    is "$model: one line alone" "$(sed -n 4p greedy)" "$(sed -n 4p sources.txt | generate $model)"
    is "$model: lines" '||tin red cup||' \
        "$(printf '\n  \nthe red cup is made of tin\n\n' | generate $model | tr '\n' '|')"
    is "$model: a last line without its end, and CR LF" 'tin red cup|tin red cup|' \
        "$(printf 'the red cup is made of tin\r\nthe red cup is made of tin' | generate $model | tr '\n' '|')"
    is "$model: a source that is too long" 1 "$(yes red | head -n 1000 | tr '\n' ' ' | generate $model | wc -l)"
    is "$model: nothing" '' "$(generate $model < /dev/null)"
    generate $model --beam 4 --n-best 3 --scores < sources.txt > best
    is "$model: three of a beam, each with its score" 6 "$(awk -F '\t' '{ print NF }' best | sort -u)"
    is "$model: the best first" 0 "$(awk -F '\t' '!($2 >= $4 && $4 >= $6)' best | wc -l)"
    is "$model: the first is the beam's" "$(cat targets.txt)" "$(cut -f 1 best)"
    is "$model: --temperature 0 is greedy" "$(cat greedy)" "$(generate $model --temperature 0 < sources.txt)"
    is "$model: --temperature 0 of a beam" "$(cat targets.txt)" "$(generate $model --beam 4 --temperature 0 < sources.txt)"
    is "$model: --top-k 1 is greedy" "$(cat greedy)" "$(generate $model --top-k 1 < sources.txt)"
    generate $model --samples 3 --temperature 3 --seed 5 < sources.txt > drawn
    is "$model: three draws" 3 "$(awk -F '\t' '{ print NF }' drawn | sort -u)"
    is "$model: the same seed" "$(cat drawn)" \
        "$(generate $model --samples 3 --temperature 3 --seed 5 --threads 1 < sources.txt)"
    is "$model: the same line in other company" "$(head -n 1 drawn)" \
        "$(head -n 1 sources.txt | generate $model --samples 3 --temperature 3 --seed 5)"
    generate $model --samples 3 --temperature 3 --seed 6 < sources.txt | cmp -s - drawn
    is "$model: another seed" 1 $?
    yes 'the red cup is made of tin' | head -n 300 | generate $model --samples 3 --temperature 100 --maximum 1 > drawn
    is "$model: some first targets are empty" 1 "$(grep -c -m 1 $'^\t' drawn)"
    is "$model: an empty target keeps its tab" 3 "$(awk -F '\t' '{ print NF }' drawn | sort -u)"
    is "$model: --maximum" '1' "$(generate $model --maximum 2 < sources.txt | awk 'NF > m { m = NF } END { print m <= 2 }')"
    is "$model: --minimum" 0 "$(generate $model --minimum 6 < sources.txt | awk 'NF < 5' | wc -l)"
    is "$model: --forbid" 0 "$(generate $model --forbid tin < sources.txt | grep -c tin)"
    is "$model: two times --forbid" 0 "$(generate --forbid tin --forbid oak $model < sources.txt | grep -cE 'tin|oak')"
    is "$model: --forbid [UNK]" "$(cat greedy)" "$(generate $model --forbid '[UNK]' < sources.txt)"
    is "$model: --forbid [SEP]" 0 "$(generate $model --forbid '[SEP]' --maximum 7 < sources.txt | awk 'NF <= 3' | wc -l)"
    sed 's/$/\tthe grey door is made of clay/' sources.txt | generate $model > of_pairs 2> error
    is "$model: pairs" "$(cat greedy)" "$(cat of_pairs)"
    is "$model: pairs" 'note: standard input: if a line has a tab, only the source before the tab is read' "$(cat error)"
    { yes 'the red cup is made of tin' | head -n 20000 | generate $model 2> error; echo "${PIPESTATUS[2]}" > status; } |
        head -n 1 > first
    is "$model: a closed pipe" 'tin red cup 141 ' "$(cat first status error | tr '\n' ' ')"
    if has_full_disk; then
        generate $model < sources.txt > /dev/full 2> error
        is "$model: a full disk" 1 $?
        is "$model: a full disk" 1 "$(grep -c '^error: .*cannot be written' error)"
    fi

    # ---- measuring ----
    evaluate $model --outputs outputs.tsv > table
    is "$model: measured" 0 $?
    is "$model: all held-out pairs" 9.000 "$(awk '$1 == "documents" { print $2 }' table)"
    is "$model: exact" 100.000 "$(awk '$1 == "exact" { print $2 }' table)"
    is "$model: the loss of training's end" \
        "$(grep -oE '"held_out_loss":[^,}]*' $model/log.jsonl | tail -n 1 | awk -F : '{ printf "%.3f", $2 }')" \
        "$(awk -v key=$model.loss '$1 == key { print $2 }' table)"
    is "$model: outputs, and references as they are read" "$(paste sources.txt greedy targets.txt targets.txt)" "$(cat outputs.tsv)"
    is "$model: as JSON" "$(awk 'NF > 1 && $2 ~ /^[0-9]/ { print $1 }' table)" \
        "$(evaluate $model --json | sed -n 's/^  "\(.*\)": {$/\1/p')"
    is "$model: --limit" 2.000 "$(evaluate $model --limit 2 | awk '$1 == "documents" { print $2 }')"
    is "$model: other pairs" 99.000 "$(evaluate $model --data pairs.tsv | awk '$1 == "documents" { print $2 }')"

    # ---- what is refused ----
    refuses "$model: an unknown objective" 2 'no objective unlm of this model; there are ' \
        train $model objective=unlm $on_pairs --steps 1 --out refused
    refuses "$model: a weight that is none" 2 'objective mass:x' train $model objective=mass:x $on_pairs --steps 1 --out refused
    refuses "$model: an unknown setting" 2 'unknown setting wdith; did you mean width?' \
        train $model wdith=64 $on_pairs --steps 1 --out refused
    refuses "$model: a setting out of range" 2 'max_length' train $model max_length=2 $on_pairs --steps 1 --out refused
    refuses "$model: a size that cannot be" 2 'width 30 does not divide into 4 heads' \
        train $model width=30 heads=4 $on_pairs --steps 1 --out refused
    refuses "$model: no pairs" 1 "objective $model needs pairs, and sentences.txt holds none" \
        train $model --data sentences.txt --steps 1 --out refused
    refuses "$model: no pairs held out" 1 "sentences.txt holds no pairs, but $folder/pairs.tsv does" \
        train $model --data pairs.tsv --dev sentences.txt --steps 1 --out refused
    refuses "$model: no text" 1 'none.tsv' train $model --data none.tsv --steps 1 --out refused
    refuses "$model: no corpus" 1 'the built-in grammar holds no pairs; give --data FILE' train $model --steps 1 --out refused
    is "$model: what is refused leaves no folder" 0 "$(ls -d refused 2> /dev/null | wc -l)"
    refuses "$model: a folder that is there" 1 "continue with --resume $model" train $model $on_pairs --out $model
    refuses "$model: a resume with settings" 2 '--resume keeps the settings of the run' \
        train $model --resume $model --steps 500
    refuses "$model: no such prior" 1 "a run of $model, which has no latents" train --fit-prior $model
    refuses "$model: options of univae" 2 "--reconstruct is an option of univae, but $model is a run of $model" \
        generate $model --reconstruct
    refuses "$model: --count" 2 '--count needs a model that samples text' generate $model --count 3
    refuses "$model: a token that is not" 2 'there is no token copper in the vocabulary' generate $model --forbid copper
    refuses "$model: --n-best alone" 2 'give --beam 4 or more' generate $model --n-best 4
    refuses "$model: --n-best of samples" 2 'give --samples 4 in place of it' generate $model --n-best 4 --top-k 5
    refuses "$model: a beam that draws" 2 '--beam 4 searches, and --temperature, --top-k or --top-p draws' \
        generate $model --beam 4 --top-k 5
    refuses "$model: a beam that draws" 2 'leave out one of them' generate $model --beam 4 --temperature 0.8
    refuses "$model: a beam and samples" 2 '--beam 4 searches, and --samples 2 draws' generate $model --beam 4 --samples 2
    refuses "$model: samples of the most likely" 2 'leave out --temperature 0, or --samples' \
        generate $model --samples 2 --temperature 0
    for gone in '--groups 2' '--diversity 1' '--length-form gnmt' '--stop never'; do
        refuses "$model: an option that is gone, $gone" 2 "unknown option ${gone% *}" generate $model --beam 4 $gone
    done
    refuses "$model: --minimum" 2 '--minimum 9 is above --maximum 8' generate $model --minimum 9 --maximum 8
    refuses "$model: --bert4keras" 2 'leave out --n-best' generate $model --beam 4 --bert4keras --n-best 2
    refuses "$model: options of univae" 2 'is an option of univae' evaluate $model --importance 3
    refuses "$model: sentences" 1 "objective $model needs pairs, and sentences.txt holds none" \
        evaluate $model --data sentences.txt
done

# ---- an objective's own name, without pairs ----
train lm layers=1 width=16 heads=2 vocabulary=100 --steps 2 --out by_name > report 2> error
is 'lm by its own name: status' 0 $?
is 'lm by its own name' 1 "$(grep -c 'objective lm$' report)"
refuses 'luna, turned' 2 'attention luna has no place for rotary positions' train mlm attention=luna rotary=true --steps 1 --out refused
is 'models are listed' 6 "$("$root/inspect" models | grep -c '^[a-z]')"
is 'kinds of attention are listed' 1 "$("$root/inspect" attention | grep -c '^A softmax')"

# ---- lines without a tab are left out, and counted ----
{ cat pairs.tsv; echo 'the red cup is made of nothing'; printf 'the red lamp\t\n'; } > holes.tsv
train unilm $small layers=1 --data holes.tsv --dev held_out.tsv --steps 2 --out holes > report 2> error
is 'lines without a tab: status' 0 $?
is 'lines without a tab' 'warning: holes.tsv: 2 lines without both a source and a target skipped' "$(cat error)"
is 'the others are read' 1 "$(grep -c '99 pairs to train on' report)"

# ---- columns after the second are left out, too, and counted ----
sed '1,3s/$/\tmore/' pairs.tsv > columns.tsv
train unilm $small layers=1 --data columns.tsv --dev held_out.tsv --steps 2 --out columns > report 2> error
is 'a third column: status' 0 $?
is 'a third column' 'warning: columns.tsv: 3 lines cut after the second column' "$(cat error)"
is 'all pairs are read' 1 "$(grep -c '99 pairs to train on' report)"

# ---- a run without its link ----
rm columns/latest
generate columns < sources.txt > first 2> error
is 'no latest: status' 0 $?
is 'no latest: one warning' 'warning: columns/latest is missing or no link; using columns/step-000002' "$(cat error)"

# ---- text that changes ----
cp pairs.tsv changing.tsv
train seq2seq $small layers=1 --data changing.tsv --steps 2 --out changing > /dev/null
echo 'one more	line' >> changing.tsv
refuses 'a text that has changed' 1 'changing.tsv has changed since the run was started' train --resume changing --steps 4

is 'a text that has changed is not needed to measure another one' '0 documents seq2seq.loss exact' \
    "$(evaluate changing --data held_out.tsv > table 2> error; echo $? $(grep -oE '^(documents|seq2seq.loss|exact) ' table))"
is 'a text that has changed: a note' 1 \
    "$(grep -c '^note: .*changing.tsv has changed.*; without it, the baselines are not measured$' error)"
refuses 'a held-out text that has changed' 1 'changing.tsv has changed since the run was started' evaluate changing

# ---- pairs that a task makes ----
made="task=reverse length=3 words=8 $small batch_tokens=400 learning_rate=4e-3 schedule_steps=800"
for model in unilm seq2seq; do
    train $model $made layers=2 --precision f32 --steps 20 --out made-$model > report
    is "$model: a task makes its text" 1 "$(grep -c '50000 pairs to train on, 5000 held out; vocabulary 13' report)"
    train --resume made-$model --steps 500 > /dev/null
    evaluate made-$model --limit 500 > table
    is "$model: has learned to reverse held-out words" 100.000 "$(awk '$1 == "exact" { print $2 }' table)"
    is "$model: writes it" 'w1 w7 w4|w0|' "$(printf 'w4 w7 w1\nw0\n' | generate made-$model | tr '\n' '|')"
done
refuses 'a task and a text' 2 'generates its own examples' train seq2seq task=copy $on_pairs --steps 1 --out refused
refuses 'a task and a vocabulary' 2 'has its own vocabulary' train seq2seq task=copy --vocab seq2seq/vocab.txt --steps 1 --out refused
refuses 'a task and weights of another text' 1 'the vocabulary is not that of task copy' \
    train seq2seq task=copy --init seq2seq --steps 1 --out refused
train seq2seq $made layers=2 words=12 --init made-seq2seq --steps 1 --out made-more > report
is 'a task with more words starts with the weights of one with fewer' 1 "$(grep -c '4 tokens that it does not know' report)"
refuses 'a task with fewer words' 1 'the vocabulary is not that of task reverse' train seq2seq $made layers=2 words=6 --init made-seq2seq --steps 1 --out refused
refuses 'a task that is none' 2 'none|copy|reverse|sort|star_graph|sudoku is expected' train seq2seq task=cpy --steps 1 --out refused

# ---- other objectives of one stack, and runs that start with the weights of another run ----
train unilm $small layers=2 objective=lm --data sentences.txt --steps 60 --out lm > /dev/null
is 'lm: samples' 3 "$(generate lm --count 3 --seed 2 | wc -l)"
is 'lm: continues lines' 9 "$(generate lm < sources.txt | wc -l)"
train unilm $small layers=1 objective=lm $on_pairs --steps 5 --out lm-of-pairs > /dev/null
is 'lm of pairs: a target for each source' 9 "$(generate lm-of-pairs < sources.txt | wc -l)"
refuses 'lm of pairs has no samples' 2 '--count needs a model that samples text' generate lm-of-pairs --count 3
train unilm $small layers=2 'attention=linear | layers 1:: softmax' $on_pairs --steps 1 --out mixed > /dev/null
is 'the attention of layers that --init leaves out' 0 "$(train unilm --init mixed layers=1 $on_pairs --steps 1 --out lower > error 2>&1; echo $?)"
refuses 'the attention of no layer' 2 '"layers 2:" names no layer; the layers are 0 to 1' \
    train unilm $small layers=2 'attention=linear | layers 2:: softmax' $on_pairs --steps 1 --out refused
train unilm objective=unilm --init lm $on_pairs --steps 1 batch_tokens=200 --out after > /dev/null
is 'after lm: status' 0 $?
cmp -s lm/vocab.txt after/vocab.txt
is 'after lm: its vocabulary' 0 $?
is 'after lm: whose weights' 1 "$(grep -c '"init": "lm/step-000060"' after/run.json)"
# measure OF RUN: prints a number of ./evaluate
measure() { evaluate "${@:2}" | awk -v of="$1" '$1 == of { print $2 }'; }
train seq2seq objective=diffusion --init seq2seq batch_tokens=300 $on_pairs masked=0.2:0.9 weighting=tokens --steps 30 --out unhides > /dev/null
# parameters RUN: prints the paths of the parameters
parameters() { grep -ao '"[a-z0-9._]*":{"dtype"' "$1/latest/model.safetensors" | sort; }
is 'diffusion after seq2seq: no new parameter' "$(parameters seq2seq)" "$(parameters unhides)"
is 'diffusion after seq2seq: parameters' 1 "$(parameters unhides | awk 'END { print (NR > 30) }')"
is 'diffusion after seq2seq: measures' 'bound noise perplexity sentence tokens' \
    "$(evaluate unhides | sed -n 's/^diffusion\.\([a-z]*\) .*/\1/p' | sort | xargs)"
refuses 'diffusion: shares in the wrong order' 2 'masked=0.8:0.2: expected LOW:HIGH with 0 <= LOW < HIGH <= 1' \
    train unilm $small objective=diffusion masked=0.8:0.2 $on_pairs --steps 1 --out refused
refuses 'gaps: a canvas with all places' 2 'gaps says how many places a canvas of diffusion has; expected objective=diffusion:1,gaps:1 canvas=drawn' \
    train unilm $small objective=diffusion,gaps $on_pairs --steps 1 --out refused
train unilm $small objective=diffusion:1,gaps:1 canvas=drawn --init lm $on_pairs --steps 30 --out counts > /dev/null
is 'gaps after lm: status' 0 $?
is 'gaps: no table of lengths' 0 "$(find counts -name lengths.txt | wc -l)"
is 'gaps: measures' 'bound length noise perplexity sentence tokens loss perplexity tokens' \
    "$(evaluate counts | sed -n 's/^\(diffusion\|gaps\)\.\([a-z]*\) .*/\1 \2/p' | sort | cut -d ' ' -f 2 | xargs)"
is 'gaps: a target for each source' 9 "$(generate counts < sources.txt | wc -l)"
is 'gaps: words stay' 1 "$(echo 'a	red cup' | generate counts --canvas | grep -c 'red.* cup\|red cup')"
train unilm $small objective=lm --init counts $on_pairs --steps 1 --out forgets > /dev/null
is 'lm after gaps: status' 0 $?
refuses 'a block of no token' 2 'block' train unilm $small objective=block-diffusion block=0 $on_pairs --steps 1 --out refused
refuses 'blocks have a mask of their own' 2 'needs a mask of its own' \
    train unilm $small objective=block-diffusion mask='A full; B full sees A' $on_pairs --steps 1 --out refused
train unilm $small layers=2 objective=block-diffusion block=1 $on_pairs --steps 30 --out blocks > /dev/null
is 'blocks of one token: nothing is random' 0.000 "$(measure block-diffusion.noise blocks)"
is 'diffusion after seq2seq: a target for each source' 9 "$(generate unhides < sources.txt | wc -l)"
train unilm $small layers=2 objective=mlm:1,unilm:1 $on_pairs --steps 20 --out both > /dev/null
is 'two objectives, two losses' 'mlm.loss unilm.loss' "$(evaluate both | awk '/\.loss/ { print $1 }' | xargs)"
train unilm $small layers=2 width=64 heads=4 dropout=0 learning_rate=0.003 schedule_steps=2000 objective=unilm-masked $on_pairs \
    --precision f32 --steps 600 --out masked > /dev/null
is 'unilm-masked: writes at [MASK]s' 1 "$(generate masked --beam 2 < sources.txt | paste - targets.txt | awk -F '\t' '$1 == $2 { n++ } END { print (n >= 7) }')"
# Lines such as "tom is in rome": only the fact in the line tells the city. Without the fact, the loss cannot be better
# than a guess.
awk 'BEGIN { split("tom ada", p); split("rome oslo cairo lima", c)
             for (i = 0; i < 400; i++) { a = p[i % 2 + 1]; b = c[int(i / 2) % 4 + 1]
                 print "[" a "](" b ") is in " b > "trees.txt"; print a " is in " b > "bare.txt" } }'
for kind in 'k-bert trees' 'mlm bare'; do
    set -- $kind
    train unilm objective=$1 layers=2 width=64 heads=4 inner=128 vocabulary=200 batch_tokens=600 max_length=16 dropout=0 hidden=0.3 \
        learning_rate=0.003 warmup=50 schedule_start=300 schedule_steps=900 --data $2.txt --dev $2.txt --precision f32 \
        --steps 500 --out of-$1 > /dev/null
done
loss_of() { evaluate "$1" --data "$2" | awk '/loss/ { print $2 }'; }
is 'k-bert reads facts' 1 "$(echo "$(loss_of of-k-bert trees.txt) $(loss_of of-mlm bare.txt)" | awk '{ print ($1 < $2 - 0.2) }')"
train seq2seq $small layers=1 objective=mass --data sentences.txt --steps 5 --out mass > /dev/null
is 'mass needs no pairs' 0 $?
train unilm $small layers=1 objective=mlm --data sentences.txt --steps 5 --out mlm > /dev/null
refuses 'mlm does not write' 2 'objective mlm does not train to continue a text' generate mlm
refuses 'mlm writes no outputs' 2 '--outputs: targets are written only for pairs; mlm was trained on mlm' \
    evaluate mlm --outputs none.tsv
for option in '--beam 2' '--length-penalty 0.5' --characters; do
    refuses "mlm writes no targets for $option" 2 "${option% *}: targets are written only for pairs; mlm was trained on mlm" \
        evaluate mlm $option
done
refuses 'samples and a beam' 2 '--beam: targets are written only for pairs; lm was trained on lm' evaluate lm --samples 5 --beam 2
refuses 'other sizes' 1 'sizes must equal those of the checkpoint' \
    train unilm --init lm width=48 $on_pairs --steps 1 --out refused
refuses 'more layers' 1 'has only 2 layers, but layers is 3; choose at most 2' \
    train unilm --init lm layers=3 $on_pairs --steps 1 --out refused
refuses 'a vocabulary of its own' 2 '--init has its own vocabulary' \
    train unilm --init lm --vocab lm/vocab.txt $on_pairs --steps 1 --out refused
refuses 'no folder' 1 'there is no folder none' train unilm --init none $on_pairs --steps 1 --out refused
refuses 'two stacks in one' 1 'has an encoder and a decoder, but this model is one stack' \
    train unilm --init seq2seq $on_pairs --steps 1 --out refused
refuses 'keep_tokens of nothing' 2 'keep_tokens makes the vocabulary of --init smaller' train unilm $on_pairs keep_tokens=true --steps 1 --out refused
train univae --init lm --data sentences.txt --steps 1 keep_tokens=true max_length=20 latent_layers=1 batch_tokens=200 --out latents > warm.txt
is 'what is new in a UniVAE' 1 "$(grep -c 'embedding, head; new: latents; [0-9]* of [0-9]* tokens' warm.txt)"
awk '{ print $0 "\t" (NR % 3 ? "many" : "few") }' sentences.txt > labelled.tsv
evaluate latents --data sentences.txt --limit 20 --importance 2 --samples 20 --swap --labelled labelled.tsv --labels 5 > table
is 'what its latents carry' 'kl.0 active_units mutual_information swap.content swap.form swap.0.content_a probe probe_neighbours probe_words clusters' \
    "$(awk '/^(kl\.|active|mutual|probe|clusters|swap\.(content|form|0.content_a))/ { print $1 }' table | xargs)"
is 'latents drawn anew, thrice' 3 "$(head -n 1 sentences.txt | generate latents --resample 2:9 --each 3 2> /dev/null | tr '\t' '\n' | wc -l)"
refuses 'each of nothing' 2 '--each needs --resample' generate latents --each 3
refuses 'a length that changes nothing' 2 '--length needs a model with free_length=true' generate latents --length 5
is 'intervals in JSON' 'low high' "$(evaluate latents --data sentences.txt --limit 5 --importance 1 --samples 5 --swap --json | grep -A6 '"swap.form"' | grep -oE 'low|high' | xargs)"
evaluate mlm --limit 5 --labelled labelled.tsv --labels 1,5 --draws 3 --json > table
is 'labels from the states of an mlm' 'probe.1 probe_neighbours.1 probe_words.1 probe.5 probe_neighbours.5 probe_words.5 clusters' "$(grep -oE '(probe[a-z_.0-9]*|clusters)' table | xargs)"
is 'the draws of labels, their mean between the least and the most' 6 "$(awk -F '[:,]' '/value/ { v = $2 } /low/ { l = $2 } /high/ { n += l <= v && v <= $2 } END { print n }' table)"
is 'labels from the states of an encoder' 1 "$(evaluate seq2seq --limit 5 --labelled labelled.tsv --labels 5 | grep -c '^probe ')"
refuses 'labels of nothing' 2 '--labels needs --labelled' evaluate mlm --labels 5
train unilm $small layers=1 objective=lm --data sentences.txt --steps 5 --out judge > /dev/null
printf '\xe2\x80\x8b\n' > invisible.txt
is 'a text without a token has no loss' 'mlm.tokens 0.000' \
    "$(evaluate mlm --data invisible.txt | awk '/^mlm/ { print $1, $2 }' | xargs)"
generate latents --vectors rows.npy < /dev/null
is 'vectors of nothing' 0 $?
refuses 'sentences of no vectors' 1 'rows.npy has no rows; expected a row of 32 numbers' generate latents --from-vectors rows.npy
is 'a judge of samples' 1 "$(evaluate latents --limit 20 --importance 1 --samples 20 --judge judge | grep -cE '^samples_judged +[0-9.]+ +[0-9.]+  a word')"
latent='width=32 heads=2 inner=64 vocabulary=200 batch_tokens=300 max_length=20 layers=3 latent_layers=2 latent_size=8'
train univae $latent latent_layers=0 --data sentences.txt --steps 5 --out plain > /dev/null
awk 'NR < 9 { print; print $0, $0, $0, $0, $0, $0, $0, $0, $0, $0, $0, $0, $0, $0, $0, $0 }' sentences.txt > longer.txt
head -n 8 sentences.txt > shorter.txt
is 'nats a character are those of lines that are read whole' '50.000 0.000 same' "$(for f in longer shorter; do evaluate plain --data $f.txt --samples 5; done | awk '/^cut/ { printf "%s ", $2 } /^nll_character/ { n = n ? (n == $2 ? "same" : "not") : $2 } END { print n }')"
train univae $latent free_length=true --data sentences.txt --steps 2 --out free > /dev/null
train univae $latent free_length=true latent_layers=0 --data sentences.txt --steps 2 --out free-plain > /dev/null
train univae $latent free_length=true pairs=true $on_pairs --steps 2 --out free-pairs > /dev/null
train univae $latent free_length=true pairs=true conditional=true $on_pairs --steps 2 --out free-read > /dev/null
is 'a length that is given is named' 'latents 0 0, free 4 0, free-plain 3 0, free-pairs 0 4, free-read 0 0, ' "$(
    for run in latents free free-plain free-pairs free-read; do
        evaluate $run --limit 3 --importance 1 --samples 3 | tr -s ' \n' ' ' > table
        printf '%s ' $run $(grep -o 'given the length' table | wc -l)
        printf '%s, ' $(grep -o "given the source's length" table | wc -l)
    done)"
refuses 'vectors of a run that has none' 2 'plain gives no vectors of lines; expected a univae with latents, a unilm, a seq2seq, an insertion, or a classify with' evaluate plain --limit 5 --samples 5 --labelled labelled.tsv
refuses 'neighbours by no vectors' 2 'plain is a run of univae that has no vectors of lines' generate plain --nearest sentences.txt
refuses 'states of no encoder' 2 '--states: plain is a run of univae that has no vectors of lines' generate plain --vectors z.npy --states cls
refuses 'states for nothing' 2 '--states chooses the vectors of --vectors and --nearest: give one' generate latents --states cls
refuses 'a posterior for nothing' 2 '--posterior needs --vectors' generate latents --posterior
refuses 'neighbours of draws' 2 '--posterior cannot be combined' generate latents --vectors z.npy --posterior --nearest sentences.txt
refuses 'states that are drawn' 2 '--posterior cannot be combined' generate latents --vectors z.npy --posterior --states mean
refuses 'a posterior of states' 2 '--posterior: mlm is a run of unilm whose vectors have no noise' generate mlm --vectors z.npy --posterior
is 'slices as in Python' 3 "$(for s in layers:0:1 layers:-1: 0:32 -32: :; do head -n 3 sentences.txt | generate latents --resample $s 2> /dev/null > sliced; echo $(wc -l < sliced) $(cksum < sliced); done | sort -u | cut -d ' ' -f 1 | xargs)"
refuses 'a slice beyond the latents' 2 'the slice 0:33 is not A:B with numbers of the 32 dimensions' generate latents --resample 0:33
refuses 'an empty slice' 2 'the slice layers:1:1 is not A:B with numbers of the 1 latent layers' generate latents --resample layers:1:1
refuses 'codes of a sphere' 2 'latents has latent=vmf, whose latents are no codes' generate latents --codes
refuses 'codes and a beam' 2 '--codes writes no text: leave out --beam' generate latents --codes --beam 3
refuses 'neighbours and codes' 2 '--nearest writes no text: leave out --codes' generate latents --codes --nearest sentences.txt
refuses 'swaps of no latents' 2 '--swap needs latents' evaluate plain --swap
refuses 'a swap with nobody' 1 '--swap needs two sentences' evaluate latents --limit 1 --samples 5 --swap
is 'one sentence has no other' 0 "$(evaluate latents --limit 1 --samples 5 --importance 1 | grep -c reconstruction_other)"
refuses 'points of nothing' 2 '--points needs --interpolate' generate latents --points 3
refuses 'more than can be written' 2 '--minimum 100 is more than the 18 tokens' generate latents --minimum 100
is 'a vocabulary and its size' 1 "$(train univae --init latents vocabulary=90 max_length=20 latent_layers=1 batch_tokens=200 --data sentences.txt --steps 1 --out sized 2>&1 | grep -c 'vocabulary=90 is ignored: no vocabulary is learned, because --init has one')"
refuses 'labels twice' 2 '--labels has a number twice' evaluate latents --labelled labelled.tsv --labels 1,1 --limit 5 --samples 5
for list in 5, ,5 5,,6; do
    refuses "labels with a gap, $list" 2 "--labels: a value is expected before and after each comma, found $list" \
        evaluate mlm --labelled labelled.tsv --labels $list
    refuses "labels with a gap, $list" 2 "found $list" evaluate mlm --labelled labelled.tsv --labels=$list
done
for objective in lm-reverse diffusion block-diffusion; do
    train unilm $small layers=1 objective=$objective --data sentences.txt --steps 5 --out texts-$objective > /dev/null
    is "samples of $objective" 1 "$(evaluate texts-$objective --limit 5 --samples 20 | grep -c '^samples  *20.000')"
done
is 'samples of lm, judged' 1 "$(evaluate judge --limit 5 --samples 20 --judge judge | grep -c '^samples_judged')"
is 'no samples of texts unless asked for' 0 "$(evaluate judge --limit 5 | grep -c '^samples')"
refuses 'samples of a run of pairs' 2 'is of runs that generate texts from nothing, which this run of objective=lm does not' \
    evaluate lm-of-pairs --samples 20
refuses 'samples of a run that does not write' 2 'which this run of objective=mlm does not' evaluate mlm --samples 20
refuses 'orders of a run that has one' 2 '--orders is an option of runs of objective=diffusion; this run was trained with objective=lm' \
    evaluate judge --orders 2
is 'blocks of one token have one order' 1 "$(evaluate blocks --orders 3 | awk '/^block-diffusion.bound/ { x = $2 } /^block-diffusion.orders/ { print x == $2 }')"
refuses 'a judge without samples' 2 '--judge measures samples: give --samples N as well' evaluate judge --judge judge
refuses 'a judge that is none' 2 'mlm is no language model; a run of ./train unilm objective=lm is expected' evaluate latents --limit 5 --judge mlm
train univae $latent pairs=true $on_pairs --steps 5 --out paraphrase > /dev/null
is 'latents of pairs' 0 $?
is 'pairs whose targets are left out' 1 "$(train univae $latent $on_pairs --steps 1 --out sources-alone 2>&1 | grep -c 'holds pairs; only their sources are read (pairs=true reads both)')"
is 'latents of pairs are measured by their targets' 'reconstruction exact samples_perplexity' "$(evaluate paraphrase --limit 5 --importance 2 --samples 9 | awk '/^(reconstruction|exact|samples_perplexity) / { print $1 }' | xargs)"
refuses 'pairs that are none' 1 'expected source<TAB>target on every line' evaluate paraphrase --data sentences.txt
refuses 'pairs that are none to train on' 1 'pairs=true, and sentences.txt holds no pairs; expected source<TAB>target on every line' train univae pairs=true --data sentences.txt --steps 1 --out refused
train --resume paraphrase --steps 6 > /dev/null
is 'latents of pairs are taken up again' 0 $?
train univae $latent latent=vq codes=16 groups=2 --data sentences.txt --steps 5 --out coded > /dev/null
train --fit-prior coded > /dev/null 2>&1
mkdir coded/latest/codes && : > coded/latest/codes/run.json # older versions kept a language model of codes there
is 'samples of codes, by the prior' 9 "$(generate coded --count 9 | wc -l)"
refuses 'a prior that is gone' 2 '--prior: there is no run codes; expected fitted, uniform or a run of' generate coded --prior codes
refuses 'a flow of codes' 2 'the latents of latent=vq are codes' train flow points=coded --steps 1 --out refused
train univae $latent latent=gaussian --data sentences.txt --steps 5 --out normal > /dev/null
train flow points=normal --steps 3 --out flow > /dev/null
is 'a flow of latents' 0 $?
train --resume flow --steps 5 > /dev/null
is 'a flow of latents is taken up again' 0 $?
is 'samples of a flow, by the prior' 9 "$(generate normal --prior flow --count 9 | wc -l)"
is 'samples of a flow are measured' 1 "$(evaluate normal --prior flow --limit 3 --importance 1 --samples 9 | grep -c '^samples_perplexity ')"
refuses 'a flow of other weights' 1 'was trained on latents of the weights' generate latents --prior flow
refuses 'a flow of some latents' 2 '--resample draws some latents given the others' generate normal --prior flow --resample 0:2
train --resume normal --steps 6 > /dev/null
refuses 'a flow for the mean of several checkpoints' 2 'leave out --average' evaluate normal --average 2 --prior flow
mv normal moved
train flow --steps 1 --out moons > /dev/null
train flow --steps 1 --out more-moons > report
is 'a folder with the name of a toy does not hide the toy' 1 "$(grep -c ' numbers, moons$' report)"
refuses 'a flow whose run is gone' 1 'normal is gone: the flow was trained on the latents of this run' evaluate flow
printf '\tfew\nred cup\t\n' > without_labels.tsv
: > empty.tsv
for file in sentences.txt empty.tsv without_labels.tsv; do
    refuses "labels that are none, $file" 1 "--labelled: $file has no line with both a text and a label; text<TAB>label is expected on every line" \
        evaluate mlm --labelled $file
done
sed '2s/$/\tfew/' sentences.txt > one_label.tsv
refuses 'labels on few lines' 1 '--labelled: one_label.tsv has no labels on most of its lines' evaluate mlm --labelled one_label.tsv
train seq2seq --init lm $on_pairs --steps 1 batch_tokens=200 --out warm > warm.txt
is 'two stacks start with one' 0 $?
is 'two stacks start with one: cross-attention is new' 1 "$(grep -c 'new.*cross-attention' warm.txt)"
refuses 'seq2seq is no unilm' 2 'there is no objective unilm of this model; there are seq2seq, seq2seq-reverse, mass' \
    train seq2seq objective=unilm $on_pairs --steps 1 --out refused
refuses 'no run' 1 'none' generate none
refuses 'no run' 1 'none' evaluate none

# ---- several runs ----
evaluate unilm seq2seq unilm > table
is 'several runs: a line for each, then mean and deviation' 'unilm seq2seq unilm mean deviation' \
    "$(awk '/^[a-z0-9]+  / && $2 ~ /^([0-9.]+|-)$/ { print $1 }' table | head -n 5 | xargs)"
is 'several runs: no line is wider than 80 columns in front of the meanings' 0 "$(sed '/^$/,$d' table | awk 'length > 80' | wc -l)"
evaluate unilm seq2seq unilm --json > lines.json
is 'several runs: a line of JSON for each' 'unilm seq2seq unilm' "$(sed -n 's/^{"run":"\([^"]*\)".*}$/\1/p' lines.json | xargs)"
is 'several runs: a line holds what one run prints' \
    "$(evaluate seq2seq --json | python3 -c 'import json, sys; print(json.load(sys.stdin))')" \
    "$(sed -n 2p lines.json | python3 -c 'import json, sys; line = json.load(sys.stdin); del line["run"]; print(line)')"
is 'several runs: mean and deviation' "$(python3 -c '
import json, statistics
x = [json.loads(line)["bleu"]["value"] for line in open("lines.json")]
print("%.3f %.3f" % (statistics.mean(x), statistics.stdev(x)))')" "$(python3 -c '
rows = [line.split() for line in open("table")]
for block in range(len(rows)):
    if "bleu" in rows[block] and len(rows[block]) > 1 and rows[block + 4][:1] == ["mean"]:
        at = rows[block].index("bleu") + 1
        print(rows[block + 4][at], rows[block + 5][at])
        break')"
is 'several runs: a measure that only some of them have' - "$(python3 -c '
rows = [line.split() for line in open("table")]
for block in range(len(rows)):
    if "unilm.perplexity" in rows[block] and rows[block + 4][:1] == ["mean"]:
        print(rows[block + 2][rows[block].index("unilm.perplexity") + 1])
        break')"
is 'several runs: what was measured before an error is printed' mlm \
    "$(evaluate mlm plain --limit 5 --labelled labelled.tsv --labels 5 2> error | awk '$1 == "mlm" { print $1; exit }')"
is 'several runs: then the error' 1 "$(grep -c '^error: .*plain gives no vectors of lines' error)"
train unilm $small layers=1 objective=lm deviation=5 --data sentences.txt --steps 1 --out wild > /dev/null
evaluate wild wild > table
is 'several runs: wide numbers stand alone' '4 0' "$(awk '!NF { head = 0; next } !head { head = NF; next }
    /^(wild|mean|deviation) / { NF == head + 1 ? n++ : wrong++ } END { print n + 0, wrong + 0 }' table)"
refuses 'several runs: one file for their outputs' 2 'give one run' evaluate unilm seq2seq --outputs both.tsv
refuses 'several runs: one that does not exist' 1 'none' evaluate unilm none --json
refuses 'several runs: an option that only one of them has' 2 'is an option of' evaluate unilm latents --swap

# ---- insertion ----
train insertion $small layers=1 decoder_layers=1 $on_pairs --precision f32 deviation=0.125 learning_rate=5e-3 schedule_steps=2500 --steps 2500 --out insertion > report
is 'insertion: status' 0 $?
is 'insertion: end' 1 "$(grep -c '^done after 2500 steps' report)"
for how in '' --parallel '--parallel --threshold 0.5' '--end-penalty 1' '--sure-end 0.5' '--rounds 9' --apart; do
    is "insertion $how: a line for a line" 9 "$(generate insertion $how < sources.txt | wc -l)"
done
is 'insertion: most are right' 1 "$(($(generate insertion --end-penalty 1 < sources.txt | paste - targets.txt | awk -F'\t' '$1 == $2' | wc -l) > 4))"
is 'insertion: rounds are shown' 'the first in brackets' "$(generate insertion --parallel --show-rounds < sources.txt | head -n 1 |
    grep -q '^  1  \[[a-z]*\]' && echo the first in brackets)"
is 'insertion: an empty source, an empty line' '' "$(echo | generate insertion --end-penalty 4)"
refuses 'insertion: no sampling' 2 'leave out --temperature, --top-k and --top-p' generate insertion --top-k 5
is 'insertion: a canvas is kept' 'red, then box' "$(printf 'the grey cup is made of oak\tred box\n' | generate insertion --canvas |
    grep -q 'red.*box' && echo red, then box)"
is 'insertion: closed slots' 'red box' "$(printf 'the red box is made of tin\t_ red _ box _\n' | generate insertion --canvas)"
is 'insertion: rounds are measured' 'rounds rounds.fewest passes ended' \
    "$(evaluate insertion --parallel | awk '/^(rounds|passes|ended)/ { print $1 }' | xargs)"
is 'insertion: its loss is one of canvases' 'insertion.canvases insertion.loss nats/canvas' \
    "$(evaluate insertion | awk '/^insertion/ { print $1 } /^insertion.loss/ { print $3 }' | xargs)"
refuses 'insertion has no beams' 2 '--beam applies to models that write token by token' generate insertion --beam 4
refuses 'insertion: nothing to count' 2 '--count needs a model that samples text' generate insertion --count 3
refuses 'a threshold of nothing' 2 '--threshold applies only to parallel insertion' generate insertion --threshold 0.5
printf 'a\tred box\na\tthe red box the red box the red box\n' > long.tsv
refuses 'a long canvas' 1 'standard input, line 2: 9 tokens, expected at most 7 (max_target)' generate insertion --canvas < long.tsv
refuses 'seq2seq does not insert' 2 '--parallel is an option of insertion, and of univae with decoder=insertion, but seq2seq is a run of seq2seq' generate seq2seq --parallel
refuses 'seq2seq has no rounds' 2 '--end-penalty is an option of insertion' evaluate seq2seq --end-penalty 2
train insertion $small layers=1 decoder_layers=1 $on_pairs finalization=sequence --steps 2 --out sequence > /dev/null
refuses 'sequence finalization is serial' 2 '--parallel needs a run in which each slot can end by itself' generate sequence --parallel
refuses 'an order of no file' 1 'none.txt' train insertion $small $on_pairs order=none.txt --steps 2 --out refused
seq 10 > order.txt
refuses 'an order of another vocabulary' 1 'order.txt has 10 numbers, expected one for each of' \
    train insertion $small $on_pairs order=order.txt --steps 2 --out refused
refuses 'two objectives' 2 'insertion has one objective, found 2' train insertion $small $on_pairs objective=insertion:1,kermit:1 --steps 2 --out refused
refuses 'kermit has two sides' 2 'order=left_to_right needs another objective' \
    train insertion $small $on_pairs objective=kermit order=left_to_right --steps 2 --out refused
train insertion --init lm objective=insertion-one-stack $on_pairs --steps 1 batch_tokens=200 --out inserted > warm.txt
is 'insertion starts with one stack: slots are new' 1 "$(grep -c 'new.*slots' warm.txt)"

# ---- masked diffusion ----
train unilm $small layers=2 $on_pairs objective=diffusion deviation=0.125 learning_rate=5e-3 schedule_steps=1000 --steps 1000 --out diffusion > report
is 'diffusion: status' 0 $?
is 'diffusion: held-out targets are shown' 1 "$(($(grep -c '^      > ' report) > 0))"
is 'diffusion: the command that writes' 1 "$(grep -c 'next *./generate diffusion < SOURCES' report)"
for how in '' '--order margin' '--steps 3' '--threshold 0.9' '--entropy-bound 0.5' '--per-pass 2 --ends-last' '--steps 4 --remask 0.5' '--block 2'; do
    is "diffusion $how: a line for a line" 9 "$(generate diffusion $how < sources.txt | wc -l)"
done
is 'diffusion: most are right' 1 "$(($(generate diffusion < sources.txt | paste - targets.txt | awk -F'\t' '$1 == $2' | wc -l) > 4))"
is 'diffusion: samples' 3 "$(generate diffusion --samples 3 < sources.txt | head -n 1 | tr '\t' '\n' | wc -l)"
is 'diffusion: passes are shown' 1 "$(generate diffusion --show-rounds < sources.txt | grep -c '^  2 .*_.*\[[a-z]*\]' | awk '{ print ($1 > 0) }')"
is 'diffusion: a canvas is kept' 'tin red box' "$(printf 'the red box is made of tin\ttin [MASK] box\n' | generate diffusion --canvas)"
is 'diffusion: a threshold of 0 needs one pass' 1.000 "$(measure passes diffusion --threshold 0)"
is 'diffusion: an empty source, an empty line' '' "$(echo | generate diffusion)"
is 'diffusion: what follows a tab is not read' 1 "$(generate diffusion < held_out.tsv 2>&1 | grep -c 'only the source before the tab is read')"
is 'diffusion: passes are measured' 'passes tokens_per_pass ended exact' \
    "$(evaluate diffusion --threshold 0.9 | awk '/^(passes|tokens_per_pass|ended|exact)/ { print $1 }' | xargs)"
is 'diffusion: fewer passes' 1 "$(evaluate diffusion --steps 2 | awk '$1 == "passes" { print ($2 <= 2) }')"
refuses 'diffusion has no beams' 2 'a run of diffusion writes by --order' generate diffusion --beam 4
refuses 'diffusion has no beams, measured' 2 'a run of diffusion writes by --order' evaluate diffusion --beam 4
refuses 'diffusion: two numbers' 2 'each say how many places a pass writes' generate diffusion --steps 3 --threshold 0.5
refuses 'diffusion: hidden again, but when' 2 '--remask hides places again between --steps' generate diffusion --remask 0.5
printf 'the red box is made of tin\ttin red box\n' > full.tsv
refuses 'diffusion: a full canvas' 1 'standard input, line 1: nothing to write' generate diffusion --canvas < full.tsv
refuses 'unilm has no steps' 2 '--steps is an option of runs of objective=diffusion; this run was trained with objective=unilm' generate unilm --steps 3
refuses 'unilm has no order, measured' 2 '--order is an option of runs of objective=diffusion' evaluate unilm --order margin
refuses 'insertion has no order' 2 '--order is an option of masked diffusion (objectives diffusion, block-diffusion, any-order; univae with decoder=diffusion), but insertion is a run of insertion' generate insertion --order margin
train unilm $small layers=2 --data sentences.txt objective=diffusion --steps 300 --out diffused > report
is 'diffusion of texts: the command that writes' 1 "$(grep -c 'next *./generate diffused --count 10' report)"
is 'diffusion of texts: samples' 5 "$(generate diffused --count 5 | wc -l)"
is 'diffusion of texts: one process or many lines, the same samples' "$(generate diffused --count 70 | head -n 5)" "$(generate diffused --count 5)"
is 'diffusion of texts: a line is continued' 1 "$(echo 'the red' | generate diffused | wc -l)"
refuses 'diffusion of texts: nothing is written' 2 '--steps is about writing by masked diffusion, but ./evaluate writes targets only for pairs' \
    evaluate diffused --steps 3
refuses 'diffusion of texts: no targets for pairs' 2 './evaluate writes no targets with a run of texts' evaluate diffused --data held_out.tsv --order margin
is 'diffusion of texts: the bound of sources, and no targets' 1 "$(evaluate diffused --data held_out.tsv | awk '/^diffusion.bound /; /^(passes|exact) /' | wc -l)"
refuses 'diffusion of texts: lines or samples' 2 '--canvas reads lines: leave out --count' generate diffused --canvas --count 2
is 'diffusion of texts: a line is filled' 1 "$(echo 'the [MASK] cup [MASK] made of tin' | generate diffused --canvas | grep -c '^the .*cup.*made of tin$')"
train univae $latent decoder=diffusion max_length=10 deviation=0.125 noise_over=0.5 warmup=100 learning_rate=5e-3 --data sentences.txt --dev sources.txt schedule_steps=1000 --steps 1000 --seed 2 --out latents_unhide > report
is 'univae, diffusion: it is named' 1 "$(grep -c '^model .*, masked diffusion' report)"
is 'univae, diffusion: the measures, of which none is a likelihood' 'reconstruction reconstruction_mean reconstruction_other kl elbo passes exact' \
    "$(evaluate latents_unhide --samples 5 | awk '/^(recon|kl |elbo|nll|passes|exact )/ { print $1 }' | xargs)"
is 'univae, diffusion: the latents of a line tell it' 1 "$(evaluate latents_unhide --samples 5 | awk '{ v[$1] = $2 } END { print (v["reconstruction"] < 0.6 * v["reconstruction_other"]) }')"
is 'univae, diffusion: in one pass, and in two' '1 2' "$(for steps in 1 2; do evaluate latents_unhide --samples 5 --steps $steps | awk '$1 == "passes" { print int($2 + 0.99) }'; done | xargs)"
is 'univae, diffusion: two samples of a line' 1 "$(head -n 1 sources.txt | generate latents_unhide --reconstruct --samples 2 | awk -F'\t' 'NF == 2' | wc -l)"
is 'univae, diffusion: rounds are shown' 1 "$(($(head -n 1 sources.txt | generate latents_unhide --reconstruct --show-rounds --steps 3 | grep -c '_ ') > 0))"
is 'univae, diffusion: one process or many lines, the same samples' "$(generate latents_unhide --count 70 | head -n 5)" "$(generate latents_unhide --count 5)"
for program in generate evaluate; do
    refuses "univae, diffusion: no insertion, $program" 2 'this run generates by masked diffusion (decoder=diffusion): leave out the options of insertion' $program latents_unhide --parallel
    refuses "univae, diffusion: no lengths, $program" 2 '--lengths is of runs with canvas=drawn' $program latents_unhide --lengths 3
    refuses "univae has no steps, $program" 2 '--steps is an option of masked diffusion, and this run has decoder=causal' $program latents --steps 3
done
refuses 'univae, diffusion: no beams' 2 'a run of diffusion writes by --order' generate latents_unhide --beam 4
refuses 'univae, diffusion: no canvas' 2 'which starts from hidden places' generate latents_unhide --canvas
grep -v MASK latents_unhide/vocab.txt > no_mask.txt
refuses 'univae, diffusion: no [MASK]' 1 'decoder=diffusion needs [MASK], which the vocabulary lacks' train univae layers=2 latent_layers=1 max_length=10 decoder=diffusion --vocab no_mask.txt --data sentences.txt --steps 1 --out refused
refuses 'univae, diffusion: no dropout of words' 2 'word_dropout is for decoder=causal' train univae $latent decoder=diffusion word_dropout=0.1 --data sentences.txt --steps 1 --out refused
refuses 'univae, diffusion: a mask of the other decoder' 2 'expected "A RULE; B full", where B sees nothing of A' train univae $latent decoder=diffusion 'mask=layers 0:1: A full; B causal' --data sentences.txt --steps 1 --out refused
train unilm $small layers=2 $on_pairs objective=block-diffusion block=2 deviation=0.125 learning_rate=5e-3 schedule_steps=1000 --steps 1000 --out in_blocks > report
is 'block-diffusion: the command that writes' 1 "$(grep -c 'next *./generate in_blocks < SOURCES' report)"
is 'block-diffusion: most are right' 1 "$(($(generate in_blocks < sources.txt | paste - targets.txt | awk -F'\t' '$1 == $2' | wc -l) > 4))"
is 'block-diffusion: two blocks in two passes' 1 "$(evaluate in_blocks --threshold 0.1 | awk '$1 == "passes" { print ($2 == 2) }')"
refuses 'block-diffusion has its own blocks' 2 '--block is of runs of objective=diffusion' generate in_blocks --block 3
train unilm $small layers=2 $on_pairs objective=diffusion canvas=drawn --steps 20 --out by_length > report
is 'canvas=drawn: the command that writes' 1 "$(grep -c 'next *./generate by_length < SOURCES' report)"
is 'canvas=drawn: the lengths of the targets' "$(cut -f 2 pairs.tsv | wc -l)" "$(awk '{ n += $3 } END { print n }' by_length/lengths.txt)"
is 'canvas=drawn: targets of the usual length' 9 "$(generate by_length < sources.txt | awk 'NF == 3' | wc -l)"
is 'canvas=drawn: several lengths are tried' 9 "$(generate by_length --lengths 4 < sources.txt | wc -l)"
is 'canvas=drawn: passes of all lengths' 1 "$(evaluate by_length --lengths 4 | awk '$1 == "passes" { print ($2 > 5) }')"
is 'canvas=drawn: the length is known, so no end is counted' 0 "$(evaluate by_length | grep -c '^ended ')"
is 'canvas=drawn: the cost of the length is measured' 1 "$(evaluate by_length | grep -c '^diffusion.length ')"
refuses 'lengths are tried where none is chosen' 2 '--lengths is of runs with canvas=drawn' generate diffusion --lengths 3
refuses 'lengths are tried for samples' 2 'samples draw their length' generate by_length --lengths 3 --samples 2
mv by_length/lengths.txt .
refuses 'canvas=drawn: how many?' 2 'no file lengths.txt' generate by_length
is 'canvas=drawn: lines say how many' 1 "$(printf 'the red box is made of tin\ttin [MASK] box\n' | generate by_length --canvas | grep -c '^tin .*box$')"
is 'canvas=drawn: the bound is measured' 1 "$(evaluate by_length | grep -c '^diffusion.bound ')"

# ---- Ctrl-C ----
"$root/train" --device cpu unilm $small layers=2 $on_pairs --minutes 5 --out stopped > report & pid=$!
until [ -s stopped/log.jsonl ] || ! kill -0 $pid 2> /dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid
is 'Ctrl-C: status' 0 $?
is 'Ctrl-C: saved' 1 "$(grep -c '^stopped as asked after [0-9]* steps, saved in stopped' report)"
is 'Ctrl-C: it writes' 9 "$(generate stopped < sources.txt | wc -l)"
# interrupted ARGUMENTS...: the status of ./generate when Ctrl-C comes after a second
interrupted() {
    timeout --preserve-status -k 5 -s INT 1 env --default-signal=INT "$root/generate" --device cpu "$@" > written
    echo $?
}
is 'Ctrl-C while it waits' 130 "$({ cat sources.txt; sleep 2; } | interrupted unilm)"
is 'Ctrl-C where lines are left' 130 "$(yes 'the red cup is made of tin' | interrupted unilm)"
is 'Ctrl-C: what was written before' 'tin red cup' "$(head -n -1 written | sort -u)"
is 'Ctrl-C where samples are left' 130 "$(interrupted lm --count 100000000)"
cd "$root"
finish targets

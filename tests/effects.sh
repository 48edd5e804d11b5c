#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that ./generate and ./evaluate ignore no option. Each option that --help lists is tried where it acts: with and
# without it, or with two values. The two outputs must differ. If an option has no line in the table below, the test
# fails. Takes ten seconds on two cores.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"

awk 'BEGIN { split("red blue green white black grey", c); split("box cup lamp ring bell door", t); split("oak tin clay", m)
             for (i = 1; i <= 6; i++) for (j = 1; j <= 6; j++) for (k = 1; k <= 3; k++)
                 printf "the %s %s is made of %s\t%s %s %s\n", c[i], t[j], m[k], m[k], c[i], t[j] }' > all.tsv
awk 'NR % 12 != 5' all.tsv > pairs.tsv
awk 'NR % 12 == 5' all.tsv > held_out.tsv
awk -F '\t' 'NR % 2 { print $1 "\t" $2; next } { print $1 "\t" $2 " " $2 }' pairs.tsv > all_lengths.tsv
cut -f 1 held_out.tsv > sources
cut -f 1 pairs.tsv > sentences.txt
head -n 60 sentences.txt > some
paste some <(tail -n 60 sentences.txt) > two_texts
sed 's/\t.*/\tcup cup/' held_out.tsv > canvases
cut -d ' ' -f 1-3 sources > halves
sed 's/\t\([a-z]*\) .*/\t\1/' all.tsv > labelled
: > nothing
small="width=32 heads=2 inner=64 vocabulary=200 batch_tokens=300 max_length=16 warmup=10 schedule_start=100
       schedule_steps=500 save_every=20 keep=9"
train() { "$root/train" --device cpu "$1" $small "${@:2}" > /dev/null 2>&1; }
# hardly trained, so that the texts depend on all numbers of the latents
train univae --data sentences.txt --dev sources layers=2 latent_layers=1 latent_size=8 free_length=true kappa=1000 deviation=0.3 \
    latent_deviation=5 prior_sentences=90 learning_rate=0.001 --steps 5 --out vae
train univae --data sentences.txt --dev sources layers=2 latent_layers=1 latent=vq latent_size=8 deviation=0.3 prior_sentences=0 \
    --steps 5 --out vq
"$root/generate" --device cpu vq --codes < some > codes
"$root/generate" --device cpu vae --vectors latents.npy < some
train unilm --data pairs.tsv --dev held_out.tsv layers=2 max_target=8 --steps 130 --out pair
train unilm objective=lm:1,lm-reverse:1 --data sentences.txt --dev sources layers=2 --steps 160 --out lm
train unilm objective=lm --data sentences.txt --dev sources layers=2 --steps 40 --out judge
train insertion --data pairs.tsv --dev held_out.tsv layers=1 decoder_layers=1 max_target=8 --steps 300 --out insertion
train unilm objective=diffusion --data pairs.tsv --dev held_out.tsv layers=2 max_target=8 --steps 130 --out diffusion
train unilm objective=diffusion canvas=drawn --data all_lengths.tsv --dev held_out.tsv layers=2 max_target=8 --steps 130 --out lengths
sed 's/\t\([a-z]*\) \(.*\)/\t\1 \1 \2 \1/' pairs.tsv > repeats.tsv
train insertion --data repeats.tsv --dev repeats.tsv layers=1 decoder_layers=1 max_target=12 --steps 150 --out repeats

# PROGRAM OPTION RUN INPUT [ARGUMENTS] = [OTHER ARGUMENTS]
table() {
    cat << 'TABLE'
generate seed vae nothing --temperature 1 --seed 1 = --temperature 1 --seed 2
generate average pair sources --scores = --scores --average 2
generate precision pair sources --scores = --scores --precision bf16
generate count vae nothing --count 2 = --count 3
generate temperature lm nothing --count 5 --temperature 1 = --count 5 --temperature 0.2
generate top-k lm nothing --count 5 --temperature 1 = --count 5 --temperature 1 --top-k 2
generate top-p lm nothing --count 5 --temperature 1 = --count 5 --temperature 1 --top-p 0.2
generate beam pair sources --scores = --scores --beam 4
generate n-best pair sources --beam 3 = --beam 3 --n-best 2
generate samples pair sources --samples 1 = --samples 2
generate scores pair sources = --scores
generate length-penalty pair sources --beam 3 --scores = --beam 3 --scores --length-penalty 0.3
generate no-repeat pair sources --minimum 7 = --minimum 7 --no-repeat 1
generate repetition-penalty pair sources --minimum 7 = --minimum 7 --repetition-penalty 5
generate minimum pair sources = --minimum 7
generate maximum pair sources = --maximum 2
generate forbid pair sources = --forbid tin --forbid clay --forbid oak
generate bert4keras pair sources --beam 3 --scores = --beam 3 --scores --bert4keras
generate reconstruct vae some = --reconstruct
generate resample vae some --temperature 1 --resample 0:1 = --temperature 1 --resample 0:8
generate swap vae two_texts --temperature 1 --swap 0:1 = --temperature 1 --swap 0:8
generate interpolate vae two_texts --swap 0:8 = --interpolate
generate each vae some --resample 0:8 = --resample 0:8 --each 2
generate points vae two_texts --interpolate = --interpolate --points 3
generate prior vae nothing --prior uniform = --prior fitted
generate latent-temperature vae nothing --temperature 1 --count 60 --latent-temperature 0.1 = --temperature 1 --count 60 --latent-temperature 2
generate refine vae nothing --prior uniform --count 20 = --prior uniform --count 20 --refine 1
generate length vae nothing --length 3 = --length 12
generate codes vq some --reconstruct = --codes
generate from-codes vq codes --reconstruct = --from-codes
generate from-vectors vae nothing --count 60 = --from-vectors latents.npy
generate nearest pair sources --nearest some = --nearest sources
generate neighbours pair sources --nearest some = --nearest some --neighbours 2
generate vectors pair sources = --vectors vectors.npy
generate states pair sources --nearest some --neighbours 9 = --nearest some --neighbours 9 --states cls
generate posterior vae some --vectors out = --vectors out --posterior
generate backward lm halves = --backward
generate parallel insertion sources --show-rounds = --show-rounds --parallel
generate threshold insertion sources --show-rounds --parallel = --show-rounds --parallel --threshold 0.99
generate end-penalty insertion sources = --end-penalty 9
generate sure-end insertion sources = --sure-end 0.999
generate apart repeats sources = --apart
generate rounds insertion sources = --rounds 1
generate canvas insertion canvases = --canvas
generate show-rounds insertion sources = --show-rounds
generate order diffusion sources --show-rounds --order confidence = --show-rounds --order random
generate per-pass diffusion sources --show-rounds = --show-rounds --per-pass 2
generate steps diffusion sources --show-rounds = --show-rounds --steps 3
generate plan lengths sources --show-rounds --steps 3 = --show-rounds --steps 3 --plan cosine
generate entropy-bound lengths sources --show-rounds = --show-rounds --entropy-bound 1
generate choice-temperature diffusion sources --show-rounds = --show-rounds --choice-temperature 9
generate remask diffusion sources --show-rounds --steps 8 = --show-rounds --steps 8 --remask 1
generate block diffusion sources --show-rounds = --show-rounds --block 1
generate lengths lengths sources --scores = --scores --lengths 8
generate ends-last diffusion sources --show-rounds = --show-rounds --ends-last
evaluate seed vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 2 --samples 9 --seed 2
evaluate data pair nothing = --data pairs.tsv
evaluate average pair nothing = --average 2
evaluate precision pair nothing = --precision bf16
evaluate limit pair nothing = --limit 3
evaluate json pair nothing = --json
evaluate importance vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 5 --samples 9
evaluate samples vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 2 --samples 12
evaluate prior vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 2 --samples 9 --prior uniform
evaluate latent-temperature vae nothing --limit 3 --importance 2 --samples 99 = --limit 3 --importance 2 --samples 99 --latent-temperature 9
evaluate refine vae nothing --limit 3 --importance 2 --samples 40 --prior uniform = --limit 3 --importance 2 --samples 40 --prior uniform --refine 1
evaluate judge vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 2 --samples 9 --judge judge
evaluate swap vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 2 --samples 9 --swap
evaluate beam pair nothing --data pairs.tsv --outputs out = --data pairs.tsv --outputs out --beam 4
evaluate length-penalty pair nothing --data pairs.tsv --outputs out --beam 4 = --data pairs.tsv --outputs out --beam 4 --length-penalty 0
evaluate characters pair nothing = --characters
evaluate outputs pair nothing = --outputs out
evaluate parallel insertion nothing = --parallel
evaluate threshold insertion nothing --parallel = --parallel --threshold 0.9999
evaluate end-penalty insertion nothing = --end-penalty 9
evaluate sure-end insertion nothing = --sure-end 0.999
evaluate apart repeats nothing = --apart
evaluate rounds insertion nothing = --rounds 1
evaluate order diffusion nothing --outputs out --order confidence = --outputs out --order random
evaluate orders diffusion nothing = --orders 2
evaluate per-pass diffusion nothing = --per-pass 2
evaluate steps diffusion nothing = --steps 3
evaluate plan lengths nothing --steps 3 = --steps 3 --plan cosine
evaluate entropy-bound lengths nothing = --entropy-bound 1
evaluate choice-temperature diffusion nothing --outputs out = --outputs out --choice-temperature 9
evaluate remask diffusion nothing --steps 8 = --steps 8 --remask 1
evaluate block diffusion nothing = --block 1
evaluate lengths lengths nothing = --lengths 8
evaluate ends-last diffusion nothing = --ends-last
evaluate labelled vae nothing --limit 3 --importance 2 --samples 9 = --limit 3 --importance 2 --samples 9 --labelled labelled
evaluate labels vae nothing --limit 3 --importance 2 --samples 9 --labelled labelled = --limit 3 --importance 2 --samples 9 --labelled labelled --labels 1,2
evaluate draws vae nothing --limit 3 --importance 2 --samples 9 --labelled labelled --labels 2 = --limit 3 --importance 2 --samples 9 --labelled labelled --labels 2 --draws 3
TABLE
}
no_effect=' help help-all version device threads patience '  # these do not change the output

# result PROGRAM RUN INPUT ARGUMENTS...: prints all that the program writes, and its status
result() {
    local program=$1 run=$2 input=$3
    shift 3
    rm -f out
    "$root/$program" --device cpu "$run" "$@" < "$input" > written 2> error
    echo "status $?"
    cat written
    [ ! -e out ] || tr -d '\0' < out
}
for program in generate evaluate; do
    for option in $(help_rows "$root/$program" --help-all | grep -oE '^  (-h, )?--[a-z0-9-]+' | sed 's/.*--//'); do
        [[ $no_effect == *" $option "* ]] && continue
        line=$(table | grep -m 1 "^$program $option ")
        is "$program --$option: has a line in tests/effects.sh" yes "$([ -n "$line" ] && echo yes || echo no)"
        [ -n "$line" ] || continue
        read -r _ _ run input arguments <<< "${line% =*} "
        one=$(result $program $run $input $arguments) other=$(result $program $run $input ${line#*=})
        is "$program --$option: both are accepted" 'status 0 status 0' "$(echo $(grep -h '^status' <<< "$one"$'\n'"$other"))"
        is "$program --$option: makes a difference" yes "$([ "$one" != "$other" ] && echo yes || echo no)"
        [ $option = precision ] ||
            is "$program --$option: accepted in bf16" 'status 0' \
                "$(result $program $run $input ${line#*=} --precision bf16 | head -n 1; cat error)"
    done
done
cd "$root"
finish effects

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# typed.sh PAGE ...: types the commands in the blocks of these pages, page by page, in a temporary folder. Each command
# must end with status 0. Trainings are made small: two steps of a small model, on text that is made here. The programs
# are those that `make` has built. These commands are not typed: make, gdb (transcripts.sh), measurements (./bench,
# compare.py), scripts of tests/, and commands on what the reader is to write.
# RUN is a run: of UniVAE on the pages of UniVAE, of insertion on the page of insertion, and of UniLM on all other
# pages. FOLDER is a checkpoint of Hugging Face.
set -uo pipefail
root=${root:-$PWD} pages=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
small="width=32 heads=2 inner=64 layers=3 vocabulary=200 batch_tokens=200 warmup=2 schedule_start=3 schedule_steps=5"
univae="latent_layers=2 latent_size=4 prior_sentences=40"

# commands PAGE ...: prints PAGE<tab>LINE<tab>COMMAND for every command in a block
commands() {
    awk -v foreign="$root/tests/book/foreign.txt" '
        FNR == 1 {
            inside = 0; yours = "^$"
            while ((getline row < foreign) > 0)
                if (split(row, cell, "\t") == 3 && cell[2] == FILENAME && cell[3] ~ /reader/) { sub(/\*.*/, "", cell[1]); yours = yours "|" cell[1] }
            close(foreign)
            while ((getline row < FILENAME) > 0)
                if (sub(/^```cpp yours: /, "", row)) { gsub(/\*/, "", row); gsub(/ /, "|", row); yours = yours "|" row }
            close(FILENAME)
        }
        /^ *```/ { inside = inside ? 0 : $0 ~ /``` *$/ ? 1 : 2; next }
        inside != 1 { next }
        {
            text = $0
            sub(/^ +/, "", text)
            sub(/^\$ /, "", text)
            if (rest == "") from = FNR
            if (sub(/\\$/, "", text)) { rest = rest text; next }
            text = rest text
            rest = ""
            gsub(/ +#.*/, "", text)
            if (text ~ yours) next
            if (text ~ /^(\.\/[a-z]+|make|echo|printf|cut|paste|build\/release\/corpus)( |$)/) print FILENAME "\t" from "\t" text
        }' "$@"
}

# small_form PAGE COMMAND: prints the command that is typed instead
small_form() {
    local page=$1 part out="" data model words of_small
    while IFS= read -r part; do
        part=$(sed -E 's/^ +| +$//g; s/^make .* ; //' <<< "$part")
        case $part in
            make* | ./bench* | *compare.py* | '') continue ;;
            ./train*)
                part=$(sed -E 's/ --(steps|minutes|threads) [0-9]+//g; s/ schedule_(start|steps)=[0-9]+//g' <<< "$part")
                model="$univae" words="" of_small=$small
                [[ $part == *" heads="* ]] && of_small=${small/heads=2 /}
                [[ $part =~ ^./train\ ([a-z0-9]+[a-z0-9-]*)(\ |$) && ${BASH_REMATCH[1]} != univae ]] && model="" words=${BASH_REMATCH[1]}
                case $part in
                    *--fit-prior*) ;;
                    *train\ flow*) part=${part/ points=vectors.npy/}" held_out=9 --steps 2 --minutes 0" ;;
                    *--init*) part+=" --steps 2 --minutes 0 batch_tokens=200 schedule_start=3 schedule_steps=5" ;;
                    *latent_layers=0*) part+=" $of_small --steps 2 --minutes 0" ;;
                    *latent_projection=false*) part+=" $of_small $univae latent_size=32 --steps 2 --minutes 0" ;;  # the width
                    *) part+=" $of_small $model --steps 2 --minutes 0" ;;
                esac
                case $part in *--data* | *--fit-prior* | *task=*) ;; *) [[ $words == '' || $words == classify || $words == flow ]] || part+=" --data pairs.tsv" ;; esac ;;
            ./evaluate*)
                part=$(sed -E 's/ --(limit|importance) [0-9]+//g' <<< "$part")" --limit 4"
                case $page in *prior.md | *univae*) part+=" --samples 4 --importance 2" ;; esac ;;
            ./tokenize*--train*) part="rm -f vocab.txt; $part" ;;
            *"--save OUT"*) part="rm -rf OUT; $part" ;;
        esac
        out+="${out:+ && }$part"
    done < <(sed 's/ && / \n/g; s/ ; / \n/g' <<< "$2")
    echo "$out"
}

# furnish PAGE: makes the folder of a reader who has typed the earlier commands of the page
furnish() {
    local page=$1
    rm -rf "$work/here" && mkdir "$work/here" && cd "$work/here" || exit 1
    ln -s "$root"/{train,generate,evaluate,inspect,tokenize,build,tests,tools} .
    cp -r "$work/corpus" .
    awk 'BEGIN { for (i = 1; i <= 200; i++) print "the red cup of number " i " is made of tin\ttin cup " i }' > pairs.tsv
    cp pairs.tsv FILE
    cut -f 1 pairs.tsv | tee text.txt text other-text my_sentences.txt sentences.txt trees.txt > sources.txt
    head -n 5 pairs.tsv | tee dev.tsv couplets.dev.tsv corpus/titles.dev.tsv > /dev/null
    cp pairs.tsv couplets.train.tsv && cp pairs.tsv corpus/titles.train.tsv
    head -n 5 text.txt | tee my_held_out.txt lines.txt > endings.txt
    cp "$root/tests/golden/tokenizer/vocab.txt" .
    cp -r "$root/tests/golden/hugging_face/roformer_char" FOLDER
    case $page in
        *prior.md | *univae* | */flow.md | */retrieval.md) cp -r "$work/univae" RUN ;;
        *insertion.md) cp -r "$work/insertion" RUN ;;
        *) cp -r "$work/unilm" RUN ;;
    esac
}

"$root/build/release/corpus" grammar --out "$work/corpus" > /dev/null || exit 1
page=README.md
mkdir "$work/unilm" "$work/univae" "$work/insertion"
furnish none
./train $small $univae --steps 2 --minutes 0 --out "$work/univae" > /dev/null 2>&1 &&
    ./train unilm objective=unilm:2,lm-reverse:1 rotary=false $small --data pairs.tsv --steps 2 --minutes 0 --out "$work/unilm" > /dev/null 2>&1 &&
    ./train insertion $small --data pairs.tsv --steps 2 --minutes 0 --out "$work/insertion" > /dev/null 2>&1 ||
    { echo "typed.sh: no run to start with"; exit 1; }
cd "$pages" && commands "$@" > "$work/commands" || exit 1
wrong=0 last=""
while IFS=$'\t' read -r page line text; do
    [ "$page" = "$last" ] || furnish "$page"
    last=$page
    typed=$(small_form "$page" "$text")
    [ -n "$typed" ] || continue
    cd "$work/here" && timeout 60 bash -c "set -o pipefail; $typed" > "$work/output" 2>&1 < /dev/null && continue
    echo "$page:$line: \`$text\`: ends with status $?, typed as: $typed"
    grep -v '^note: ' "$work/output" | tail -n 3 | sed 's/^/    it prints: /'
    wrong=1
done < "$work/commands"
[ $wrong = 0 ]

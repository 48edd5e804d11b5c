#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests what a newcomer meets in the first hour: training on a terminal, with its bar and with Ctrl-C; warnings about
# text that is not read whole; and messages that fit a terminal. Takes a quarter of a minute.
. "$(dirname "$0")/command_line.sh"
root=$PWD
cd "$folder"
train() { "$root/train" --device cpu --threads 1 "$@"; }
terminal() { python3 "$root/tests/terminal.py" "$@" 2>&1; }
tiny='width=16 heads=2 inner=32 layers=5 vocabulary=120 batch_tokens=200 schedule_start=1 schedule_steps=2'
for i in $(seq 60); do
    printf 'the %d red cups are made of tin\t%d cups of tin\n' $i $((i % 7))
done > pairs.tsv
cut -f 1 pairs.tsv > lines.txt
python3 -c "for i in range(90): print(chr(0x4e00 + i) + ' the cup ' + chr(0x5e00 + i) + '\t' + chr(0x6e00 + i) + ' cup')" > letters-pairs.tsv
cut -f 1 letters-pairs.tsv > letters-lines.txt

# ---- Ctrl-C: with these settings, a step and the measures before saving take much longer than three presses ----
long='width=128 heads=2 inner=512 layers=8 vocabulary=120 batch_tokens=30000 schedule_start=1 schedule_steps=2'
for i in $(seq 700); do echo "$(yes "the $i red cups" | head -n 12 | tr '\n' ' ')"; done > long.txt
for presses in 1 2 3; do
    terminal 80 "activations,press $presses" "$root/train" --device cpu --threads 1 lm $long --data long.txt --dev long.txt --minutes 5 --out stopped-$presses > pressed-$presses
done
for presses in 1 2; do
    is "Ctrl-C, $presses within half a second: it says so first, then saves and stops" 'saving...|saved after|stopped as asked|status 0|' \
        "$(grep -oE 'saving\.\.\.|saved after|stopped as asked|status [0-9]*' pressed-$presses | tr '\n' '|')"
    is "Ctrl-C, $presses within half a second: a checkpoint" 1 "$(ls -d stopped-$presses/step-* | wc -l)"
done
is 'Ctrl-C, three times: it ends at once' 'saving...|status 130|' "$(grep -oE 'saving\.\.\.|saved after|status [0-9]*' pressed-3 | tr '\n' '|')"

# ---- the bar ----
# bars FILE: prints the two smallest lengths of the bar's lines, in characters, and how many of the lines have an error
# behind the bar
bars() {
    python3 - "$1" <<'END'
import re, sys
bars = re.findall(r"\[[=>]* *\] step [^\r\n]*", open(sys.argv[1], "rb").read().decode())
print(*sorted({len(bar) for bar in bars})[:2], sum("error: " in bar for bar in bars))
END
}
# A terminal that is narrowed while it is written to.
terminal 80 '] step ,columns 40,] step ,columns 30,] step ,press 1' "$root/train" --device cpu --threads 1 lm $tiny --data lines.txt --minutes 5 --out narrowed > narrowed.txt
is 'a narrowed terminal: status' 'status 0' "$(tail -n 1 narrowed.txt)"
is 'a narrowed terminal: bars become as narrow' '29 39 0' "$(bars narrowed.txt)"
# An error that comes while the bar is there: the limit on file sizes is below the size of a checkpoint.
terminal 80 '-,press 0' bash -c "ulimit -f 8; exec '$root/train' --device cpu --threads 1 lm $tiny --data lines.txt save_every=1 --steps 9 --out limited" > limited.txt
is 'an error clears the bar' '1 0' "$(grep -ac 'error: ' limited.txt) $(bars limited.txt | awk '{ print $NF }')"

# ---- what a terminal of 80 columns shows of a whole training: start, warnings, bar, Ctrl-C, samples, commands ----
long='which was broken when it fell from the shelf in the kitchen of the house where they live'
sed "s/\$/ $long/" lines.txt > long-lines.txt
screen() { python3 "$root/tests/screen.py" 80; }
terminal 80 '] step ,press 0,] step ,press 1' "$root/train" --device cpu --threads 1 univae $tiny max_length=12 --data long-lines.txt --dev long-lines.txt --minutes 5 --out recorded | screen > screen.txt
is 'a recording: status' 'status 0' "$(tail -n 1 screen.txt)"
is 'a recording: broken lines' '' "$(grep ' <broken>' screen.txt)"
is 'a recording: a long warning is wrapped' 2 "$(grep -A 1 '^warning: 60 of 60 lines' screen.txt | grep -cE '^warning: |^  .*max_length keeps it$')"
is 'a recording: the bar is alone on its line, and one is left' 1 "$(grep -c '] step ' screen.txt)"
is 'a recording: the bar' 1 "$(grep -cE '^\[[=> ]+\] step [0-9]+ loss [0-9.]+ ' screen.txt)"
is 'a recording: in this order' 'text|model|warning|run|memory|saving|saved|after|random samples|stopped|memory|next' \
    "$(grep -oE '^(text|model|warning|run|memory|saving|saved|after|stopped|next)\b|random samples' screen.txt | paste -sd '|')"
# The same lines reach a file unbroken.
train univae $tiny max_length=12 --data long-lines.txt --dev long-lines.txt --steps 1 --out filed > log 2> error
is 'a file: a long warning is one line' 1 "$(grep -cE '^warning: 60 of 60 lines .* max_length keeps it$' error)"

# ---- text that is not read whole: every family that reads text, with the setting to change ----
cases=0
for model in $(families_of "$root/inspect"); do
    [ "$model" = classify ] && continue  # is tested below
    [ "$model" = flow ] && continue      # it reads no text
    reads=$(settings_of "$root/train" $model | grep '^max_')
    data=pairs.tsv; case " $(echo $reads) " in *' max_target '*) ;; *) data=lines.txt ;; esac
    for setting in $reads; do
        cases=$((cases + 1))
        train "$model" $tiny --data $data $setting=4 --steps 1 --out cut > log 2> error
        is "$model $setting=4: lines are cut" 1 "$(grep -cE "^warning: [0-9]+ of [0-9]+ (lines|sources|targets) \(1e\+02 %|100 %\) have more than 4 tokens and lose their end; a larger $setting keeps it$" error)"
        rm -rf cut
    done
    train "$model" $tiny vocabulary=64 --data letters-$data --steps 1 --out unknown > log 2> error
    is "$model: unknown words" 1 "$(grep -cE '^warning: [0-9]+ of [0-9]+ words \([0-9.]+ %\) are read as \[UNK\]; a larger vocabulary' error)"
    rm -rf unknown
    train "$model" $tiny vocabulary=300 --data $data --steps 1 --out whole > log 2> error
    is "$model: text that is read whole" '' "$(cat error)"
    rm -rf whole
done
is 'families that read text, and their lengths' 'more than 5' "$([ $cases -gt 5 ] && echo more than 5 || echo $cases)"
mkdir -p classes/a classes/b
for i in $(seq 30); do printf 'x%.0s' $(seq $i) > classes/a/$i; printf 'y%.0s' $(seq $i) > classes/b/$i; done
train classify task=classes max_length=20 width=16 heads=2 inner=32 layers=1 --steps 1 --out files > log 2> error
is 'classify: files are cut' 'warning: 20 of 60 files (33 %) have more than 20 bytes and lose their end; a larger max_length keeps it' "$(cat error)"

# ---- messages ----
printf '\tone\n\ttwo\n' > tabs.txt
refuses 'pairs without sources' 1 'tabs.txt: none of 2 lines with a tab has both a source before it and a target behind it' train unilm --data tabs.txt
refuses 'an option without its value' 2 '--minutes: a value is expected, but none follows' train --minutes
refuses 'an option that is given twice' 2 '--minutes is given more than once' train --minutes 1 --minutes 2
refuses 'a number in another base' 2 '--steps: a whole number is expected, found 0x10' train --steps 0x10
refuses 'a window without its sign' 2 '"window" has no number; expected window=3' train univae mask='A causal window 3; B causal' --data lines.txt
refuses 'a lab that is not' 2 'there is no lab 77; there are 00 01 02' make -s -C "$root" lab LAB=77
refuses 'an op that is not' 2 'there is no op and no model of the name nosuchop' "$root/inspect" gradients nosuchop
is 'its length' 'at most three lines' "$("$root/inspect" gradients nosuchop 2>&1 | awk '{ print length($0) <= 240 ? "at most three lines" : length($0) }')"
is 'lab 2 is lab 02' "$(make -s -n -C "$root" lab LAB=02)" "$(make -s -n -C "$root" lab LAB=2)"
finish terminal

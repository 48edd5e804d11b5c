#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests packed texts as a user meets them: ./tokenize --pack and --check, and ./train --data FOLDER. A run on a packed
# text must have the log of a run on the same text, also if it is resumed, and by two processes if mpirun is there. Its
# memory must not grow with the text. Takes half a minute.
. "$(dirname "$0")/command_line.sh"
root=$PWD build=$PWD/${BUILD:-build/release}
cd "$folder"
tokenize() { "$build/tokenize" "$@"; }
# lines FILE: the log of a run without clock times
# text NUMBER: pairs; the sources have 1 to 12 words
text() {
    awk -v count="$1" 'BEGIN { split("red blue green white black grey box cup lamp ring bell door", w); srand(3)
        for (i = 0; i < count; i++) {
            line = ""
            for (j = 0; j <= i % 12; j++) line = line (j ? " " : "") w[1 + int(rand() * 12)]
            print line "\t" w[1 + i % 12] " " w[1 + i % 5] } }'
}
text 3000 > pairs.tsv
cut -f 1 pairs.tsv > lines.txt
tokenize --train 80 --vocab vocab.txt < lines.txt > report 2> /dev/null
small='layers=2 width=16 heads=2 inner=32 batch_tokens=300 max_length=10 warmup=5 schedule_start=10 schedule_steps=80 precision=f32 parts=2'
train() { "$build/train" --device cpu --threads 2 "$@" > said 2>&1 || cat said; }

is 'packed' '2947 sentences to train on, 53 held out' "$(tokenize --vocab vocab.txt --pack one < lines.txt)"
is 'packed pairs' '2947 pairs to train on, 53 held out' "$(tokenize --vocab vocab.txt --pack two --pairs < pairs.tsv)"
is 'checked' 'two: 2947 pairs, 25030 tokens; all checksums are right' "$(tokenize --check two)"
# The same lines written in another way give the same files.
{ printf '\xef\xbb\xbf'; sed 's/$/\r/' lines.txt; } | tokenize --vocab vocab.txt --pack windows > said
is 'Windows: ids' 0 "$(cmp one/ids.bin windows/ids.bin > said 2>&1; echo $?)"
is 'Windows: held out' 0 "$(cmp one/held-out.txt windows/held-out.txt > said 2>&1; echo $?)"
for threads in 1 3; do
    tokenize --vocab vocab.txt --pack "threads-$threads" --pairs --threads $threads < pairs.tsv > said
    is "$threads threads" '' "$(diff -r two "threads-$threads")"
done
{ head -c 20000 pairs.tsv; sleep 0.3; tail -c +20001 pairs.tsv; } | tokenize --vocab vocab.txt --pack pieces --pairs > said
is 'a text that arrives in pieces' '' "$(diff -r two pieces)"

# shellcheck disable=SC2086
for model in unilm seq2seq; do
    train $model $small --data pairs.tsv --vocab vocab.txt --steps 40 --out "$model-text"
    train $model $small --data two --steps 40 --out "$model-packed"
    is "$model: log" "$(lines $model-text/log.jsonl)" "$(lines $model-packed/log.jsonl)"
    train $model $small --data two --steps 15 --out "$model-halves"
    train --resume "$model-halves" --steps 40
    is "$model: log of a resumed run" "$(lines $model-text/log.jsonl)" "$(lines $model-halves/log.jsonl | grep -v '"step":15,')"
done
grep -o 'warning: .* of .* sources ([^)]*)' said
if type -P mpirun > /dev/null && [ -e "$build/libmasquerade_mpi.so" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        OMPI_MCA_btl_vader_single_copy_mechanism=none
    # shellcheck disable=SC2086
    mpirun -q -n 2 "$build/train" --device cpu --threads 1 unilm $small --data two --steps 40 --out shared > said 2>&1 || cat said
    is 'two processes: log' "$(lines unilm-text/log.jsonl)" "$(lines shared/log.jsonl)"
fi
is 'measures' 0 "$("$build/evaluate" unilm-packed --limit 5 > said 2>&1; echo $?)"
is 'what is not measured' 1 "$(grep -c 'note: two is a packed text, so no nearest training source is searched for' said)"

refuses 'a folder is kept' 2 'is there already' tokenize --vocab vocab.txt --pack one < lines.txt
refuses 'no text' 1 'standard input has no sentence' tokenize --vocab vocab.txt --pack none < /dev/null
refuses 'no pairs' 1 'standard input has no pair: none of 3000 lines' tokenize --vocab vocab.txt --pack none --pairs < lines.txt
refuses 'not text' 1 'are not UTF-8' tokenize --vocab vocab.txt --pack none < "$build/tokenize"
refuses 'no vocabulary' 2 '--vocab is required' tokenize --pack none < lines.txt
refuses 'other rules' 2 '--single-digits' tokenize --vocab vocab.txt --pack none --single-digits < lines.txt
refuses 'how lines are written' 2 'leave it out here' tokenize --vocab vocab.txt --pack none --ids < lines.txt
refuses 'a vocabulary to check with' 2 'leave out --vocab' tokenize --vocab vocab.txt --check one
refuses 'no packed text' 1 'pack.json' tokenize --check unilm-text
refuses 'another vocabulary' 2 'leave out --vocab' "$build/train" unilm --data one --vocab vocab.txt
refuses 'another case' 2 'other rules' "$build/train" lm cased=true --data one
is 'nothing is left' '' "$(ls -d none .new-* 2> /dev/null)"
cp -r one damaged
printf '\377' | dd of=damaged/ids.bin bs=1 seek=1000 conv=notrunc 2> /dev/null
refuses 'damage' 1 'damaged/ids.bin has the checksum' tokenize --check damaged
refuses 'damage that training meets' 1 'damaged/ids.bin has the id' \
    "$build/train" lm layers=1 --data damaged --steps 3000 --minutes 0.3 --out bad
truncate -s -2 damaged/ids.bin
refuses 'a file that is cut off' 1 'damaged/ids.bin has ' "$build/train" lm --data damaged
rm -rf two
tokenize --vocab vocab.txt --pack two < lines.txt > said
refuses 'another text' 1 'two has changed since the run was started' "$build/train" --resume unilm-packed

# A signal ends the work, and leaves nothing.
mkfifo slow
"$build/tokenize" --vocab vocab.txt --pack stopped < slow > said 2>&1 &
stopped=$!
exec 3> slow
text 3000 >&3
sleep 0.5
kill $stopped
wait $stopped
is 'stopped' 1 $?
exec 3>&-
is 'nothing is left by a signal' '' "$(ls -d stopped .new-* 2> /dev/null)"

# The memory of training, in MiB, for a text of 1 MB and one of 60 MB.
for count in 25000 1500000; do
    text $count | tokenize --vocab vocab.txt --pack "text-$count" --pairs > said
    # shellcheck disable=SC2086
    train unilm $small --data "text-$count" --steps 20 --out "run-$count"
    sed -n 's/^memory *\([0-9]*\) MiB.*/\1/p' said
done > memory
is 'memory' 1 "$(awk 'NR == 1 { one = $1 } NR == 2 { print $1 < one + 12 }' memory)"

finish packed

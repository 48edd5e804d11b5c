#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests ./tokenize as a user meets it: a line out for each line in, options, messages, and a full disk.
. "$(dirname "$0")/command_line.sh"
vocab=tests/golden/tokenizer/vocab.txt
hello() { echo hello | ./tokenize "$@"; }
# says NAME STATUS PART OPTION...: checks that ./tokenize fails with this status and one error line that contains PART
says() { refuses "${@:1:3}" hello "${@:4}"; }
tokenize() { ./tokenize --vocab "$vocab" "$@"; }

printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\nwor\n##ld\n,\n[\n]\nmask\n"\n' > "$folder/vocab.txt"
vocab=$folder/vocab.txt
is 'tokens' 'hello , world' "$(echo 'Hello, WÖRLD' | tokenize)"
is 'ids' '5 9 6' "$(echo 'Hello, WÖRLD' | tokenize --ids)"
is 'special' '[CLS] hello [SEP]' "$(echo hello | tokenize --special)"
is 'bytes' 'hello@0:5 world@6:12' "$(echo 'hello wörld' | tokenize --offsets)"
is 'characters' 'hello@0:5 world@6:11' "$(echo 'hello wörld' | tokenize --characters)"
is 'pairs' '[CLS]/0 hello/0 [SEP]/0 world/1 [SEP]/1' "$(printf 'hello\tworld\n' | tokenize --pairs --special --types)"
is 'cut' '[CLS] hello [SEP] world [SEP]' "$(printf 'hello , ,\tworld ,\n' | tokenize --pairs --special --max-length 5)"
is 'cut by the other rules' '[CLS] hello [SEP] world , [SEP]' \
    "$(printf 'hello , ,\tworld , ,\n' | tokenize --pairs --special --max-length 6 --rules hugging-face)"
is 'cut at the left' '[CLS] , , [SEP] , [SEP]' \
    "$(printf 'hello , ,\tworld ,\n' | tokenize --pairs --special --max-length 6 --cut-left)"
is 'the first text is cut' 'hello world , ,' \
    "$(printf 'hello , ,\tworld , ,\n' | tokenize --pairs --max-length 4 --truncate first)"
is 'the second text is cut' 'hello , , ,' \
    "$(printf 'hello , ,\tworld , ,\n' | tokenize --pairs --max-length 4 --truncate second --cut-left)"
is 'special tokens are text' '[ mask ]' "$(echo '[MASK]' | tokenize)"
is 'unless asked' '[MASK]' "$(echo '[MASK]' | tokenize --recognise)"
is 'replaced' '" hello "' "$(echo '“hello”' | tokenize --replace ascii)"
printf 'x\thello \n' > "$folder/replacements"
is 'replaced, in the places of the line' 'hello@0:1 world@1:6' \
    "$(echo xworld | tokenize --replace "$folder/replacements" --offsets)"
is 'unknown' '[UNK] | wor [UNK] ##ld|' "$(for how in word character; do
    echo worzld | tokenize --unknown $how; done | tr '\n' '|' | sed 's/|/ | /; s/ | $/|/')"
is 'restored' '- hello , world|+ hello, world|3 lines, 1 left out for [UNK], 1 of 2 restored exactly: 50.00 %|' \
    "$(printf 'hello, world\nhello , world\nxyz\n' | tokenize --restore | tr '\n' '|')"
is 'back' 'hello, world' "$(echo '5 9 6' | tokenize --decode --ids)"
is 'lines' '||hello||' "$(printf '\n\nhello\n\n' | tokenize | tr '\n' '|')"
is 'a last line without its end' 'hello|hello|' "$(printf 'hello\nhello' | tokenize | tr '\n' '|')"
is 'nothing' '' "$(tokenize < /dev/null)"
is 'CR LF' 'hello|' "$(printf 'hello\r\n' | tokenize | tr '\n' '|')"
is 'any bytes' 3 "$(printf 'a\xff\n\x00\xe4\xb8\nhello' | tokenize | wc -l)"
is 'threads' "$(yes 'hello, wörld' | head -n 200000 | tokenize --threads 1 | cksum)" \
    "$(yes 'hello, wörld' | head -n 200000 | tokenize --threads 3 | cksum)"

printf 'hello world\nhello worlds\nhello\n' | ./tokenize --vocab "$folder/learned" --train 30 > "$folder/report" 2> /dev/null
is 'training' 0 $?
is 'report' 1 "$(grep -c 'tokens per word' "$folder/report")"
is 'report is 80 wide' 0 "$(awk 'length > 80' "$folder/report" | wc -l)"

yes 'abcdefgh abc' | head -n 9 > "$folder/long"
learned() { ./tokenize --vocab "$folder/learned$1" --train 30 "${@:2}" < "$folder/long" 2> /dev/null | grep 'with \[UNK\]'; }
is 'training, with longer words left out' 1 "$(learned 1 --max-word 5 | grep -c '50.00 %')"
is 'training with the rules of Hugging Face leaves words of more than 100 characters out' 1 \
    "$(printf '%0150d abc\n%0150d abc\n' 0 0 > "$folder/long"; learned 2 --rules hugging-face | grep -c '50.00 %')"
is 'back, after the mark of the byte order' 'hello' "$(printf '\xef\xbb\xbf5\n' | tokenize --decode --ids)"
mkdir "$folder/equal"
(cat "$vocab"; echo hello) > "$folder/equal/vocab.txt"
is 'equal tokens: tokenizer.json needs vocab.txt' 1 "$(./tokenize --vocab "$folder/equal/vocab.txt" \
    --write-json "$folder/equal/tokenizer.json" 2>&1 | grep -c 'note: 1 tokens .* keep the vocabulary beside it')"
is 'equal tokens, from both files' $'hello\n14' "$(echo hello | ./tokenize --vocab "$folder/equal" 2> /dev/null; echo hello |
    ./tokenize --vocab "$folder/equal/tokenizer.json" --ids 2> /dev/null)"
says 'how words become tokens is nothing for training' 2 'leave it out' --vocab "$folder/new" --train 30 --unknown character
says 'nor is this' 2 'leave it out' --vocab "$folder/new" --train 30 --recognise

says 'a file is kept' 2 'is there already' --vocab "$vocab" --train 30
says 'a folder that is not there' 2 'is not there' --vocab "$folder/none/v" --train 30
says 'no vocabulary' 1 'cannot open' --vocab "$folder/none"
says 'wrong id' 1 'is no id' --vocab "$vocab" --decode --ids
says 'no room' 1 'expected at least 2' --vocab "$vocab" --special --max-length 1
says 'a text that is not there' 1 'line 1 has 1 and 0 tokens' --vocab "$vocab" --special --max-length 2 --truncate second
says 'no replacement' 1 'line 1' --vocab "$vocab" --replace "$vocab"
says 'two kinds of work' 2 'one at a time' --vocab "$vocab" --decode --report
says 'no train' 2 '--min-count needs --train' --vocab "$vocab" --min-count 3
if has_full_disk; then
    echo hello | tokenize > /dev/full 2> "$folder/error"
    is 'a full disk' 1 $?
    is 'a full disk' 1 "$(grep -c 'cannot be written' "$folder/error")"
fi

finish tokenize

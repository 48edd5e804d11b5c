#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests ./bench alone, and tools/bench/compare.py without PyTorch and with a script in PyTorch's place.
# tests/gpu_half_hour.sh runs compare.py with such a script, too. Takes half a minute. Run it after `make test`.
. "$(dirname "$0")/command_line.sh"
bench=build/release/bench
attention=(attention --lengths 16 --tokens 32 --heads 2 --precision f32 --repeats 1)

# ---- this engine alone -----------------------------------------------------------------------------------------------
"$bench" "${attention[@]}" --save "$folder/saved" >"$folder/said"
is 'ours alone' 0 $?
is 'what is not measured' 'only this engine was measured; tools/bench/compare.py attention compares' "$(tail -n 1 "$folder/said" | cut -d ' ' -f 1-8)"
is 'rows' 6 "$(grep -cE '^(full|causal|prefix) ' "$folder/said")"
"$bench" "${attention[@]}" --json | sed '/"load"/d' | grep -c '"mask"' >"$folder/rows"
is 'as JSON' "$(grep -c '"mask"' "$folder/saved")" "$(cat "$folder/rows")"
is 'whole' 1 "$(grep -c '^  "complete": true' "$folder/saved")"
"$bench" "${attention[@]}" --turns </dev/null >"$folder/said" 2>&1
is 'who takes turns has gone' 0 $?
is 'nothing was measured' 0 "$(grep -c 'GFLOP/s' "$folder/said")"

# ---- kinds of attention against the length ---------------------------------------------------------------------------
kinds=("$bench" attention --lengths 16,32 --repeats 1 --heads 2 --size 4)
"${kinds[@]}" --kinds all --save "$folder/saved" >"$folder/said"
is 'kinds' 0 $?
kinds_there=$(build/release/inspect attention | sed '/^$/q' | grep -c .)
is 'a row for each kind and length' $((2 * kinds_there)) "$(grep -c '"inside_ms"' "$folder/saved")"
is 'softmax is faster than itself' 0 "$(grep -c '^softmax .* here$' "$folder/said")"
"${kinds[@]}" --kinds luna --mask lm >"$folder/said"
is 'a kind that cannot' 'luna refuses:' "$(grep ^luna "$folder/said" | head -n 1 | awk '{ print $1, $2 }')"
"${kinds[@]}" --kinds luna --alone >"$folder/said"
is 'one row alone' '1 16' "$(grep -c '"kind":"luna"' "$folder/said") $(grep -o '"length":[0-9]*' "$folder/said" | cut -d : -f 2)"
refuses 'a row that needs too much memory' 1 'softmax on 16 tokens was not measured: error: out of memory' \
    "$bench" attention --lengths 16 --repeats 1 --heads 1024 --size 1024 --kinds softmax
refuses 'no such kind' 2 'moon not in' "${kinds[@]}" --kinds moon
refuses 'no such picture' 2 'neither in .svg nor in .png' "${kinds[@]}" --kinds luna --plot "$folder/picture.jpg"
if command -v gnuplot >/dev/null; then
    "${kinds[@]}" --kinds luna --plot "$folder/picture.svg" >"$folder/said"
    is 'a picture' 1 "$(grep -c '</svg>' "$folder/picture.svg")"
fi

# ---- beside other software -------------------------------------------------------------------------------------------
if command -v python3 >/dev/null; then
    python3 tests/tools/compare_test.py >"$folder/said" 2>&1
    is 'tests/tools/compare_test.py' '0 OK' "$? $(tail -n 1 "$folder/said")"
    cat >"$folder/python" <<'END'
#!/usr/bin/env bash
while read -r line; do
    case $line in
        *'"do":"work"'*)
            echo '{"version":"one 2.0", "agrees":false,' \
                '"said":"eager; loss 8.98765, norm 12345.67891, after an update 8.90000; and so on"}' ;;
        *) echo '{"seconds":0.25, "peak_bytes":4294967296}' ;;
    esac
done
END
    chmod +x "$folder/python"
    tools/bench/compare.py "${attention[@]}" --bench "$bench" --peer "$folder/python" >"$folder/said" 2>"$folder/note"
    is 'beside a peer' 0 $?
    is 'its line in each row' 6 "$(grep -cE '^  PyTorch  +250 +250 - 250 .* GFLOP/s +[0-9]+$' "$folder/said")"
    is 'what it holds' 6 "$(grep -c ' MiB$' "$folder/said")"
    is 'its version once' 1 "$(grep -c '^    one 2.0$' "$folder/said")"
    is 'it computes another thing' 6 "$(grep -c '^note: WARNING: PyTorch does NOT compute the same' "$folder/note")"
    is '80 wide' '' "$(grep -E '^ .{80}' "$folder/said")"
    for case in "${attention[*]}" 'train --marks univae-default --brief' 'tokenizer --repeats 1 --text README.md' \
        'decode --models univae-default,unilm-default --batches 1 --sources 1 --beams 1 --repeats 1'; do
        # shellcheck disable=SC2086
        tools/bench/compare.py $case --bench "$bench" --peer /nowhere/python --save "$folder/saved" >"$folder/said" 2>"$folder/note"
        is "$case: alone" 0 $?
        is "$case: one line says so" "$(grep -c '^note: .*/nowhere/python.*; only this engine is measured' "$folder/note")" 1
        is "$case: whole" 1 "$(grep -c '^  "complete": true' "$folder/saved")"
    done
    refuses 'no such setting' 2 'error: --variants: there is no fast; there are eager, ' tools/bench/compare.py train --bench "$bench" --variants fast
    refuses 'no such mark' 2 '--marks: x not in' tools/bench/compare.py train --bench "$bench" --marks x
    refuses 'no program' 1 'there is no /nowhere' tools/bench/compare.py train --bench /nowhere
else
    echo 'skipped: without python3 nothing can be set beside ours'
fi
finish bench

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
is 'no other software measures kinds' 0 "$(grep -c compare.py "$folder/said")"
is 'a row for each kind and length' $((2 * kinds_there)) "$(grep -c '"inside_ms"' "$folder/saved")"
is 'softmax is faster than itself' 0 "$(grep -c '^softmax .* here$' "$folder/said")"
"${kinds[@]}" --kinds luna --mask lm >"$folder/said"
is 'a kind that cannot' 'luna refuses:' "$(grep ^luna "$folder/said" | head -n 1 | awk '{ print $1, $2 }')"
is 'no slope of short lengths' 'softmax - -' "$("${kinds[@]}" --kinds softmax | tail -n 1 | xargs)"
alone=("$bench" attention --repeats 1 --heads 2 --size 4 --alone)
for precision in f32 bf16; do
    "${alone[@]}" --kinds luna --lengths 16 --precision $precision >"$folder/said"
    is "one row alone, $precision: a line of JSON" '1 luna 16' \
        "$(python3 -c 'import json, sys; all = [json.loads(line) for line in sys.stdin]; print(len(all), all[0]["kind"], all[0]["length"])' <"$folder/said")"
done
for wrong in luna,linear all; do
    refuses "alone, $wrong" 2 "--alone measures one kind on one length: found --kinds $wrong and 1 length" "${alone[@]}" --lengths 16 --kinds $wrong
done
refuses 'alone, two lengths' 2 'found --kinds luna and 2 lengths' "${alone[@]}" --lengths 16,32 --kinds luna
refuses 'both precisions' 2 '--precision is both, expected f32 or bf16' "${kinds[@]}" --kinds luna --precision both
for option in '--plot p.svg' '--limit 3' --alone; do
    refuses "no kinds: $option" 2 "${option% *} needs --kinds" "${kinds[@]}" $option
done
for option in '--tokens 32' '--dropout 0.5'; do
    refuses "kinds: $option" 2 'cannot be combined' "${kinds[@]}" --kinds luna $option
done
refuses 'a row that needs too much memory' 1 'softmax on 16 tokens was not measured: error: out of memory' \
    "$bench" attention --lengths 16 --repeats 1 --heads 1024 --size 1024 --kinds softmax
refuses 'no such kind' 2 'found moon' "${kinds[@]}" --kinds moon
refuses 'no such picture' 2 'neither in .svg nor in .png' "${kinds[@]}" --kinds luna --plot "$folder/picture.jpg"
if command -v gnuplot >/dev/null; then
    "${kinds[@]}" --kinds luna --plot "$folder/picture.svg" >"$folder/said"
    is 'a picture' 1 "$(grep -c '</svg>' "$folder/picture.svg")"
fi

# ---- many processes --------------------------------------------------------------------------------------------------
small=(lm layers=1 width=16 heads=2 inner=16 vocabulary=64 max_length=16 batch_tokens=200 precision=f32)
for i in $(seq 60); do echo "the $((i % 7)) cats see $((i % 5)) dogs" ; done >"$folder/lines"
many=("$bench" --device cpu --repeats 1 many "${small[@]}" --data "$folder/lines")
"${many[@]}" --processes 1 >"$folder/said"
is 'one process' 0 $?
is 'one process: a row' 1 "$(grep -cE '^ +1 +[0-9]+ +[0-9.]+ +[0-9.]+ - [0-9.]+$' "$folder/said")"
refuses 'without mpirun' 1 'there is no mpirun: run make deps-mpi, then make and make bench' env PATH=/nowhere "$PWD/$bench" many
refuses 'no messages' 2 'give --processes 2, or --latency and --bandwidth' "${many[@]}" --processes 1 --simulate
refuses 'no such setting' 1 'lm by 1 process was not measured: unknown setting widht' "${many[@]}" widht=3 --simulate --latency 1 --bandwidth 1
# A step of 8 parts of 10 ms, with an update of 2 ms and latencies of 100 us.
"${many[@]}" parts=8 --simulate --part 10 --update 2 --latency 100 --bandwidth 1e6 >"$folder/said"
is 'simulated: status' 0 $?
is 'simulated: one process' '8 82.0 0.00 82.0 1.00 100 %' "$(awk '$1 == 1' "$folder/said" | tr -s ' ' | cut -d ' ' -f 3-)"
is 'simulated: eight processes' '8 12.0 0.60 12.6 6.51 81 %' "$(awk '$1 == 8' "$folder/said" | tr -s ' ' | cut -d ' ' -f 3-)"
is 'simulated: 1024 processes' '1024 12.0 0.60 12.6 833 81 %' "$(awk '$1 == 1024' "$folder/said" | tr -s ' ' | cut -d ' ' -f 3-)"
"${many[@]}" parts=8 --simulate --part 10 --latency 100 --bandwidth 1e6 --node 4 --between 1e-6 >"$folder/said"
is 'simulated: within a node' 1 "$(awk '$1 == 4 && $4 < 1' "$folder/said" | grep -c .)"
is 'simulated: between nodes' 1 "$(awk '$1 == 8 && $4 > 1000' "$folder/said" | grep -c .)"
if type -P mpirun >/dev/null && [ -e build/release/libmasquerade_mpi.so ]; then
    "${many[@]}" --simulate --save "$folder/saved" >"$folder/said"
    is 'many: status' 0 $?
    is 'many: rows' '1 2 4' "$(awk '/measured:$/ { exit } $3 ~ /^[0-9.]+$/ && $5 == "-" { print $1 }' "$folder/said" | xargs)"
    is 'many: predicted and measured' '2 4' "$(awk '/measured:$/ { on = 1 } on && $5 ~ /^[0-9.]+$/ { print $1 }' "$folder/said" | xargs)"
    # If the gradient has G bytes, each of N processes sends 2 G (N - 1) / N bytes, and less than 1000 bytes of small
    # messages. All processes compute the same bits.
    python3 - "$folder/saved" >"$folder/found" <<'END'
import json, sys
rows = [row for row in json.load(open(sys.argv[1]))["rows"] if "weights" in row]
for row in rows:
    n = row["processes"]
    print(n, 0 <= row["sent"] - 2 * row["gradient_bytes"] * (n - 1) / n < 1000, row["weights"] == rows[0]["weights"],
          row["exchange"]["most"] >= row["exchange"]["least"] >= 0, row["part"] > 0, row["update"] > 0)
END
    is 'many: bytes, bits and times' "$(printf '%d True True True True True\n' 1 2 4)" "$(cat "$folder/found")"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -q -n 2 "${many[@]}" >"$folder/said"
    is 'started by mpirun' '0 2' "$? $(awk '$5 == "-" { print $1 }' "$folder/said")"
    message=$(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -q -n 2 "${many[@]}" --simulate 2>&1)
    is 'started by mpirun, --simulate' 'error: --simulate starts processes itself: leave out mpirun or srun' \
        "$(grep '^error: ' <<< "$message" | head -n 1)"
    MASQUERADE_MPI=/nowhere.so refuses 'no library' 1 'lm by 2 processes was not measured: the MPI library /nowhere.so cannot be opened' \
        "${many[@]}" --processes 2
else
    echo 'skipped: there is no mpirun, or no libmasquerade_mpi.so: make deps-mpi, then make'
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
    refuses 'no such mark' 2 '--marks: expected one of bert-small' tools/bench/compare.py train --bench "$bench" --marks x
    refuses 'no program' 1 'there is no /nowhere' tools/bench/compare.py train --bench /nowhere
else
    echo 'skipped: without python3 nothing can be set beside ours'
fi
finish bench

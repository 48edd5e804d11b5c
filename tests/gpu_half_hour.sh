#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests tools/make/gpu_half_hour.sh without a GPU. The fake device takes the place of the GPU, with and without faults.
# Scripts take the place of the CUDA Toolkit and PyTorch, and write down what they are asked. Takes under a minute on
# two cores. Run it after `make test`. The parts beside PyTorch need python3.
# shellcheck source=tests/command_line.sh disable=SC2154
. "$(dirname "$0")/command_line.sh"
export MASQUERADE_CUDA=$PWD/build/release/fake_cuda.so MASQUERADE_FAKE_OPEN=1 GPU_BRIEF=1 GPU_PYTHON=$folder/bin/python
export PATH=$folder/bin:$PATH
unset MASQUERADE_FAKE_FAULT GPU_SECONDS GPU_LIMIT GPU_JOBS
out=$folder/out
half_hour() { tools/make/gpu_half_hour.sh "$1" "${2:-$out}" "${3:-build/release}" "${@:4}"; }

# ---- stand-ins for what is missing -----------------------------------------------------------------------------------
mkdir "$folder/bin"
stub() {  # stub NAME: makes a program from the text on standard input, which may note its arguments in $asked
    { printf '#!/usr/bin/env bash\nasked=%q/asked-%s\n' "$folder" "$1"; cat; } >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}
stub nvidia-smi <<< 'exit 9'
stub compute-sanitizer <<'END'
[ "$1" = --version ] && exit
echo "$1 $2 ${MASQUERADE_SMALL_LADDER-} ${*: -1}" >> "$asked"
case $* in *racecheck*embedding_forward*) echo '========= Race reported between two writes'; exit 9 ;; esac
shift 4
exec "$@"
END
stub ncu <<'END'
[ "$1" = --version ] && exit
echo "$*" >> "$asked"
while [ $# -gt 0 ]; do
    case $1 in --export) : > "$2" ;; --import) echo "kernels of $2"; exit ;; train) exit ;; esac
    shift
done
END
stub python <<'END'
[ "$1" = -c ] && exit
case $1 in */compare.py) exec python3 "$@" --peer "$0" ;; esac
echo "start $1" >> "$asked"
while read -r line; do
    case $line in
        *'"do":"work"'*) echo "$line" >> "$asked"; echo '{"version":"2", "said":"plain", "agrees":false}' ;;
        *'"do":"turn"'*) echo '{"seconds":1, "peak_bytes":1}' ;;
    esac
done
END
# at POINTER FILE: prints a value of a JSON file, as JSON; prints nothing if the file is not JSON
cat >"$folder/at.cpp" <<'END'
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
int main(int, char** words) try {
    std::ifstream file(words[2]);
    std::cout << nlohmann::json::parse(file).at(nlohmann::json::json_pointer(words[1])) << '\n';
} catch (const std::exception& error) {
    std::cerr << words[2] << ": " << error.what() << '\n';
    return 1;
}
END
${CXX:-g++} -std=c++17 "$folder/at.cpp" -o "$folder/at" || exit 1
at() { "$folder/at" "$@"; }
# items RESULT STAGE: prints the names of the items with this result, sorted, in one line
items() { sed -nE 's/^  \{"name": "(.*)", "result": "'"$1"'".*/\1/p' "$out/stage-$2.json" | sort | tr '\n' ';'; }

# ---- no GPU, no programs, no stage -----------------------------------------------------------------------------------
for stage in 1 2 3 4 5 test bench; do
    MASQUERADE_FAKE_FAULT=none refuses "stage $stage without a GPU" 1 'no GPU answers' half_hour $stage
done
refuses 'no programs and no GPU' 1 'no GPU answers' half_hour 1 "$out" "$folder/nowhere"
is 'nothing was written' '' "$(ls "$out" 2>/dev/null)"
half_hour 6 >"$folder/said" 2>&1
is 'there is no stage 6' 2 $?

# ---- stage 1 on a bad device -----------------------------------------------------------------------------------------
# No model uses these ops here. The test case of a forward also runs its backward, so that both cases fail.
MASQUERADE_FAKE_FAULT=gaussian_kl_backward:wrong,gaussian_sample_backward:hang,rotary_backward:crash GPU_LIMIT=12 \
    half_hour 1 >"$folder/said" 2>&1
is 'a bad device' 1 $?
is 'wrong' 'gpu: gaussian_kl_backward;gpu: gaussian_kl_forward;racecheck gpu: embedding_forward;' "$(items FAILED 1)"
is 'hung' 'gpu: gaussian_sample_backward;gpu: gaussian_sample_forward;' "$(items 'timed out' 1)"
is 'crashed' 'gpu: rotary_backward;gpu: rotary_forward;' "$(items crashed 1)"
is 'all were run' '' "$(items 'not run' 1)"
is 'the rest is well' "$(build/release/tests --list-test-cases --test-case='gpu: *' | grep -c '^gpu: ')" \
    $(($(items ok 1 | tr ';' '\n' | grep -c '^gpu: ') + 6))
is 'the first fault' 1 "$(grep -c 'gpu: gaussian_kl_forward", .*"fault": "gaussian_kl.* is off by' "$out/stage-1.json")"
is 'the signal' 2 "$(grep -c '"crashed", .*"fault": "signal ABRT"' "$out/stage-1.json")"
is 'the sanitizer says' 1 "$(grep -c 'embedding_forward: Race reported' "$out/stage-1.log")"
is 'sanitizer' 20 "$(grep -cE '^--tool (mem|race)check 1 --test-case=gpu: ' "$folder/asked-compute-sanitizer")"
is 'one line names them' 1 "$(grep -c '^error: stage 1: failed: .*gpu: gaussian_kl_forward' "$folder/said")"
is 'stage 1' true "$(at /complete "$out/stage-1.json")"
for case in train-univae-default attention decode; do is "$case" true "$(at /complete "$out/stage-1-$case.json")"; done
is 'ours is measured' '"fake GPU"' "$(at /device "$out/stage-1-train-univae-default.json")"

# ---- the other stages ------------------------------------------------------------------------------------------------
half_hour 4 >"$folder/said" 2>&1
is 'stage 4, the device is well now' 1 $?
is 'but one' 'racecheck gpu: embedding_forward;' "$(items FAILED 4)"
is 'what failed is run again' 6 "$(items ok 4 | tr ';' '\n' | grep -cE '^gpu: (gaussian|rotary)[a-z_]*$')"
is 'and in other ways' 12 "$(items ok 4 | tr ';' '\n' | grep -cE '^gpu: .*, small, waiting$|^memcheck gpu: ')"
half_hour 4 "$folder/named" build/release 'train univae-default' >"$folder/said" 2>&1
is 'stage 4 by name' 0 $?
is 'ways of training' 4 "$(grep -c '"result": "ok"' "$folder/named/stage-4.json")"

if command -v python3 >/dev/null; then
half_hour 2 >"$folder/said" 2>&1
is 'stage 2' 0 $?
variants() { grep -oE '"variant":"[a-z-]*"' "$folder/asked-python" | sort | uniq | tr '\n' ';'; }
is 'eager' '"variant":"eager";"variant":"eager-sdpa";' "$(variants)"
is 'three peers' 3 "$(grep -oE '^start .*/(train|attention|decode)_peer.py' "$folder/asked-python" | sort | uniq | wc -l)"
peer=/rows/0/beside/PyTorch
is 'beside PyTorch' 1.0 "$(at "$peer/seconds/median" "$out/stage-2-train-univae-default.json" | sed 's/^1$/1.0/')"
is 'which computes another thing' false "$(at "$peer/agrees" "$out/stage-2-train-univae-default.json")"
is 'whole' true "$(at /complete "$out/stage-2-attention.json")"
rm "$folder/asked-python"
half_hour 3 >"$folder/said" 2>&1
is 'stage 3' 0 $?
is 'one setting' '"variant":"compiled-sdpa"; 1' "$(variants) $(grep -c '"do":"work"' "$folder/asked-python")"
else
    echo 'skipped: without python3 nothing can be set beside PyTorch'
fi
GPU_PYTHON=$folder/bin/nvidia-smi half_hour 2 "$folder/alone" >"$folder/said" 2>&1
is 'no PyTorch' '1 PyTorch' "$? $(sed -n 's/^error: stage 2: failed: //p' "$folder/said")"

half_hour 5 >"$folder/said" 2>&1
is 'stage 5' 0 $?
is 'ncu looks at training' 1 \
    "$(grep -cE -- '--set basic .*--launch-count 400 .*/bench train .*--brief' "$folder/asked-ncu")"
for file in launches.csv kernels.txt; do is "$file" 1 "$(grep -c '^kernels of' "$out/stage-5-$file")"; done
is 'a stage leaves 8 files at most' '' "$(for stage in 1 2 3 4 5; do
    [ "$(find "$out" -name "stage-${stage}[.-]*" | wc -l)" -le 8 ] || echo $stage; done)"

# ---- stages that are cut off -----------------------------------------------------------------------------------------
GPU_SECONDS=24 MASQUERADE_FAKE_FAULT=linear_forward:hang GPU_JOBS=1 half_hour 1 "$folder/short" >"$folder/said" 2>&1
is 'no time' 1 $?
is 'what did not fit is named' 1 \
    "$(grep -c '^error: stage 1: failed: gpu: linear_forward,.* no time .*: .*gpu: layernorm_forward, ' "$folder/said")"
for signal in TERM KILL; do
    MASQUERADE_FAKE_FAULT=layernorm_forward:hang GPU_JOBS=1 GPU_LIMIT=4 tools/make/gpu_half_hour.sh 1 \
        "$folder/$signal" build/release >/dev/null 2>&1 &
    until grep -qs linear_backward "$folder/$signal/stage-1.json"; do sleep 0.1; done
    kill -s $signal $!
    wait $! 2>/dev/null
    status=$?
    is "$signal" "$(case $signal in TERM) echo 130 ;; *) echo 137 ;; esac)" $status
    is "$signal leaves what was found" 'false "gpu: linear_forward"' \
        "$(at /complete "$folder/$signal/stage-1.json") $(at /items/0/name "$folder/$signal/stage-1.json")"
done

finish gpu_half_hour

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plants errors in the PTX of some kernels, one at a time. The test of the op must fail each time, and its message must
# name the error. Run this after `make ptx-test`. If that was made with CUDA_ARCHS, run this with CUDA_BUILD=build/cuda.
# The library is linked anew for each error.
set -euo pipefail
cd "$(dirname "$0")/../.."
cuda=${CUDA_BUILD:-build/cuda-ptx} ptx=build/ptx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
faults=0

# planted NAME KERNELS CASE SAID PATTERN REPLACEMENT [COUNT]: replaces matches of a Python pattern in KERNELS.ptx: the
# first COUNT matches (default: 1), or all if COUNT is 0. The test case "gpu: CASE" must then fail and print SAID.
planted() {
    local name=$1 kernels=$2 case=$3 said=$4
    python3 - "$cuda/$kernels.ptx" "$folder/${kernels##*/}.ptx" "$5" "$6" "${7:-1}" <<'PY' || { echo "$name: nothing to replace"; faults=1; return; }
import re, sys
text, count = re.subn(sys.argv[3], sys.argv[4], open(sys.argv[1]).read(), count=int(sys.argv[5]), flags=re.S)
open(sys.argv[2], "w").write(text)
sys.exit(count == 0)
PY
    python3 tests/ptx/translate.py "$folder/${kernels##*/}.ptx" "$folder/planted.cpp"
    g++ -std=c++17 -I. -fPIC -O1 -g1 -march=native -ffp-contract=off -fno-math-errno -fsanitize=thread \
        -include tests/emulator/cuda.h -c "$folder/planted.cpp" -o "$folder/planted.o"
    g++ -shared $(find "$cuda/engine" "$ptx" -name '*.o' -not -path "$ptx/$kernels.o") "$folder/planted.o" -o "$folder/library.so" \
        -Wl,-Bsymbolic,-z,defs,--version-script=tests/ptx/exports.map -ldl $FMT
    if MASQUERADE_CUDA=$folder/library.so MASQUERADE_CUBLAS=$folder/library.so build/release/tests \
        --test-case="gpu: $case" > "$folder/said" 2>&1; then
        echo "$name: survives"
        faults=1
    elif ! grep -q "$said" "$folder/said"; then
        echo "$name: is seen, and not called \"$said\""
        faults=1
    else
        echo "$name: $(grep -m 1 -o "$said.*" "$folder/said" | cut -c 1-150)"
    fi
}
FMT=$(sed -n 's/^FMT_LIB *:= *//p' build/config.mk)

planted 'a barrier deleted' engine/ops/cuda/tiled_multiply linear_forward 'of shared memory at' 'bar\.sync \t?0;' '' 0
planted 'a load 4 bytes further' engine/ops/layernorm layernorm_forward 'layernorm (GPU' \
    '(ld\.global\.f32 [^\[]*\[%rd\d+)\]' '\1+4]'
planted 'a load that is not aligned' engine/ops/layernorm layernorm_forward 'bytes past a multiple' \
    '(ld\.global\.f32 [^\[]*\[%rd\d+)\]' '\1+2]'
planted 'a load outside of all memory' engine/ops/layernorm layernorm_forward 'no memory of the device' \
    '(ld\.global\.f32 [^\[]*\[%rd\d+)\]' '\1+1073741824]'
planted 'another lane of a shuffle' engine/ops/layernorm layernorm_forward 'layernorm (GPU' \
    '(shfl\.sync\.bfly\.b32 [^,]*, [^,]*, )%r\d+' '\g<1>3'
planted 'two registers of a fragment exchanged' engine/ops/cuda/tiled_multiply linear_forward 'linear (GPU' \
    '(mma\.sync[^{]*\{[^}]*\}, \{%r\d+),(%r\d+),(%r\d+),' '\1,\3,\2,' 0
exit $faults

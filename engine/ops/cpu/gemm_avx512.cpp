// SPDX-License-Identifier: MIT
// The matrix product on 32 registers of 16 floats.
#include "engine/ops/cpu/gemm_kernel.h"

#include <utility>

#ifdef __x86_64__
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")

namespace masquerade {
namespace {
constexpr int lanes = 16;
constexpr int tile_rows = 12, vectors = 2;
typedef float Vector __attribute__((vector_size(64)));
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
}  // namespace
}  // namespace masquerade

#include "engine/ops/cpu/gemm_block.h"

#pragma GCC pop_options

namespace masquerade {
const GemmKernel* gemm_avx512() {
    static constexpr GemmKernel kernel = {"avx512", 4, lanes, scratch, block};
    return &kernel;
}
}  // namespace masquerade

#else
namespace masquerade {
const GemmKernel* gemm_avx512() { return nullptr; }
}  // namespace masquerade
#endif

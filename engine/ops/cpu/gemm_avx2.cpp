// SPDX-License-Identifier: MIT
// The matrix product on 16 registers of 8 floats.
#include "engine/ops/cpu/gemm_kernel.h"

#include <utility>

#ifdef __x86_64__
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace masquerade {
namespace {
constexpr int lanes = 8;
constexpr int tile_rows = 6, vectors = 2;
typedef float Vector __attribute__((vector_size(32)));
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
}  // namespace
}  // namespace masquerade

#include "engine/ops/cpu/gemm_block.h"

#pragma GCC pop_options

namespace masquerade {
const GemmKernel* gemm_avx2() {
    static constexpr GemmKernel kernel = {"avx2", 4, lanes, scratch, block};
    return &kernel;
}
}  // namespace masquerade

#else
namespace masquerade {
const GemmKernel* gemm_avx2() { return nullptr; }
}  // namespace masquerade
#endif

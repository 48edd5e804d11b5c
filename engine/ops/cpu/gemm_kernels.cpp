// SPDX-License-Identifier: MIT
// Compiles the inner part of the matrix product (gemm_block.h) for each instruction set.
#include "engine/ops/cpu/gemm_kernel.h"
#include "engine/ops/cpu/instructions.h"

#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace masquerade {

// AVX-512, which has 32 vector registers of 16 floats.
#ifdef __x86_64__
COMPILE_FOR("avx512f,avx512bw,avx512vl,avx512dq,fma")
namespace {
namespace avx512 {
constexpr int lanes = 16, tile_rows = 12, vectors = 2;
typedef float Vector __attribute__((vector_size(64)));
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
#include "engine/ops/cpu/gemm_block.h"
}  // namespace avx512
}  // namespace
END_COMPILE_FOR

// AVX2, which has 16 vector registers of 8 floats.
COMPILE_FOR("avx2,fma")
namespace {
namespace avx2 {
constexpr int lanes = 8, tile_rows = 6, vectors = 2;
typedef float Vector __attribute__((vector_size(32)));
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#include "engine/ops/cpu/gemm_block.h"
}  // namespace avx2
}  // namespace
END_COMPILE_FOR
#endif

// For any machine: vectors of 4 floats. multiply_add() rounds the product, and then the sum.
namespace {
namespace generic {
constexpr int lanes = 4, tile_rows = 4, vectors = 2;
typedef float Vector __attribute__((vector_size(16)));
inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
#include "engine/ops/cpu/gemm_block.h"
}  // namespace generic

#ifdef __x86_64__
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif
bool always() { return true; }
}  // namespace

const std::vector<GemmKernel>& gemm_kernels() {
    static const std::vector<GemmKernel> all = {
#ifdef __x86_64__
        {"avx512", has_avx512, 4, avx512::lanes, avx512::tile_columns, avx512::scratch, avx512::block,
         avx512::packed_size, avx512::pack_all},
        {"avx2", has_avx2, 4, avx2::lanes, avx2::tile_columns, avx2::scratch, avx2::block, avx2::packed_size,
         avx2::pack_all},
#endif
        {"generic", always, 4, generic::lanes, generic::tile_columns, generic::scratch, generic::block,
         generic::packed_size, generic::pack_all},
    };
    return all;
}

}  // namespace masquerade

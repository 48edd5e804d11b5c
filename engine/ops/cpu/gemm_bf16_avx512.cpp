// SPDX-License-Identifier: MIT
// Multiplies blocks of bf16 products with AVX-512, whose 32 registers hold the sums of up to 8 rows and 32 columns.
//
// The instruction VDPBF16PS multiplies two pairs of numbers. It adds the product of the second numbers of both pairs to
// the sum, then the product of the first numbers, each as a fused multiply-add (Intel SDM). Like the AMX instruction,
// it rounds to nearest, and replaces denormals by zeros in what it reads and writes.
#include "engine/ops/cpu/gemm_bf16.h"
#include "engine/ops/cpu/instructions.h"

#ifdef __x86_64__
#include <immintrin.h>

COMPILE_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")

namespace masquerade {
namespace {

constexpr int rows_at_once = 8;

template <int vectors>
void multiply_rows(const Bf16Block& g, int row) {
    __m512 sum[rows_at_once][vectors];
    const char* start = reinterpret_cast<const char*>(g.start) + row * g.start_row;
    const char* left = reinterpret_cast<const char*>(g.left) + row * g.left_row;
    char* end = reinterpret_cast<char*>(g.end) + row * g.end_row;
#pragma GCC unroll 16
    for (int i = 0; i < rows_at_once; i++)
        for (int j = 0; j < vectors; j++)
            sum[i][j] = g.start ? _mm512_loadu_ps(start + i * g.start_row + 64 * j) : _mm512_setzero_ps();
    const std::uint16_t* right = g.right;
    for (std::int64_t step = 0; step < g.steps; step++, right += 1024)
        for (int pair = 0; pair < 16; pair++, left += 4) {
            __m512bh b[vectors];
            for (int j = 0; j < vectors; j++) b[j] = (__m512bh)_mm512_loadu_si512(right + 512 * j + 32 * pair);
#pragma GCC unroll 16
            for (int i = 0; i < rows_at_once; i++) {
                __m512bh a = (__m512bh)_mm512_set1_epi32(
                    *reinterpret_cast<const __attribute__((may_alias)) int*>(left + i * g.left_row));
                for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], a, b[j]);
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < rows_at_once; i++)
        for (int j = 0; j < vectors; j++) _mm512_storeu_ps(end + i * g.end_row + 64 * j, sum[i][j]);
}

void multiply(const Bf16Block& g) {
    if (g.before) finish_bf16_block(*g.before);
    for (int row = 0; row < g.rows; row += rows_at_once)
        g.column_tiles == 2 ? multiply_rows<2>(g, row) : multiply_rows<1>(g, row);
}

}  // namespace
}  // namespace masquerade
END_COMPILE_FOR

namespace masquerade {
const Bf16Form* bf16_avx512() {
    static constexpr Bf16Form form = {"avx512_bf16", [] {}, [] {}, multiply};
    static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512bf16");
    return has ? &form : nullptr;
}
}  // namespace masquerade

#else
namespace masquerade {
const Bf16Form* bf16_avx512() { return nullptr; }
}  // namespace masquerade
#endif

// SPDX-License-Identifier: MIT
// Logits of many words, a block of rows at a time: how large a block is, and the log of the sum of exp of a row.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cpu/gemm.h"

#include <algorithm>

// gcc takes vectors of half the width where it may choose; these loops are long enough for whole ones.
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define WHOLE_VECTORS [[gnu::noinline, gnu::noclone, gnu::target("prefer-vector-width=512")]]
#else
#define WHOLE_VECTORS [[gnu::noinline, gnu::noclone]]
#endif

namespace masquerade::cpu {

// A multiple of gemm_depth, so that w1 is the sum that one product over all rows would make.
constexpr std::int64_t block_rows = 2 * gemm_depth;
constexpr int step_words = 1280;  // of the online rule

// The last block may be shorter than gemm_depth only where it is the only one: short products are slow.
inline std::int64_t rows_of_next_block(std::int64_t left, std::int64_t) {
    if (left <= block_rows) return left;
    return left < block_rows + gemm_depth ? gemm_depth : block_rows;
}

// exp(x) for x that is not above a few times ten: e^-87, 1.6e-38, for everything below.
inline float exp_from_tiny(float x) { return exp_inside(choose(x < -87.0f, -87.0f, x)); }

WHOLE_VECTORS inline float largest(const float* x, int count, float top) {
#pragma omp simd reduction(max : top)
    for (int i = 0; i < count; i++) top = x[i] > top ? x[i] : top;
    return top;
}

// sum exp(x - from), x <= from, in eight running sums. What is taken for e^-87 cannot be seen beside the
// exp(0) of the row's largest. `next` is what will be read soon.
WHOLE_VECTORS inline float sum_of_exp(const float* x, int count, float from, const float* next) {
    constexpr int sums = 8, at_once = 2 * sums;
    float s[sums] = {}, total = 0;
    int i = 0;
    for (; i + at_once <= count; i += at_once) {
        __builtin_prefetch(next + i, 0, 2);
        float e[at_once];
#pragma omp simd
        for (int j = 0; j < at_once; j++) e[j] = exp_from_tiny(x[i + j] - from);
#pragma omp simd
        for (int j = 0; j < sums; j++) s[j] = s[j] + e[j] + e[sums + j];
    }
    for (int end = i + sums; i < end && end <= count; i++) s[i % sums] += exp_from_tiny(x[i] - from);
    for (; i < count; i++) s[0] += exp_from_tiny(x[i] - from);
    for (float each : s) total += each;
    return total;
}

// log sum exp x by the online rule: what was summed so far is scaled to a larger logit when it comes. Meanwhile
// the next row, which follows x, is brought near.
inline float log_sum_exp(OneLane, const float* x, int count) {
    float top = -INFINITY, sum = 0;
    for (int begin = 0; begin < count; begin += step_words) {
        int words = std::min(step_words, count - begin);
        float before = top;
        top = largest(x + begin, words, top);
        float from = top == -INFINITY
                         ? 0.0f
                         : top;  // nothing allowed so far: what is summed counts for nothing later, but may not be NaN
        sum = sum * exp_of(before - from) + sum_of_exp(x + begin, words, from, x + count + begin);
    }
    return top + log_of(sum);
}

}  // namespace masquerade::cpu

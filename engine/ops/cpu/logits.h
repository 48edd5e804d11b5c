// SPDX-License-Identifier: MIT
// Functions for ops that compute logits over the whole vocabulary, for one block of rows at a time. They compute the
// number of rows of the next block, and the log-sum-exp of a row of logits.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cpu/gemm.h"

#include <algorithm>

// For AVX-512, gcc uses vectors of half the width by default. The loops of functions marked WHOLE_VECTORS are long
// enough for the full width.
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define WHOLE_VECTORS [[gnu::noinline, gnu::noclone, gnu::target("prefer-vector-width=512")]]
#else
#define WHOLE_VECTORS [[gnu::noinline, gnu::noclone]]
#endif

namespace masquerade::cpu {

// Largest number of rows of a block. It is a multiple of gemm_depth, so that the gradient of w, which is summed block
// by block, has the bits of one product over all rows.
constexpr std::int64_t block_rows = 2 * gemm_depth;
constexpr int step_words = 1280;  // number of logits that a step of log_sum_exp() reads

// Returns the number of rows of the next block if `left` rows remain. If there are several blocks, each has at least
// gemm_depth rows, because matrix products with few rows are slow.
inline std::int64_t rows_of_next_block(std::int64_t left, std::int64_t) {
    if (left <= block_rows) return left;
    return left < block_rows + gemm_depth ? gemm_depth : block_rows;
}

// Returns exp(x) for -87 <= x <= 87. If x < -87, returns e^-87, which is about 1.6e-38.
inline float exp_from_tiny(float x) { return exp_inside(choose(x < -87.0f, -87.0f, x)); }

// Returns the largest of `top` and the `count` numbers in x.
WHOLE_VECTORS inline float largest(const float* x, int count, float top) {
#pragma omp simd reduction(max : top)
    for (int i = 0; i < count; i++) top = x[i] > top ? x[i] : top;
    return top;
}

// Returns the sum of exp(x - from) over `count` numbers x <= from, in eight running sums. A term below e^-87 counts
// as e^-87. This does not change the rounded sum of a row, because the row's largest number contributes exp(0) = 1. The
// memory at `next` is prefetched.
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

// Returns log sum exp of the row x, which is read in steps. If a step contains a larger logit than all earlier steps,
// the sum so far is multiplied by exp(old maximum - new maximum). The next row, which follows x in memory, is
// prefetched.
inline float log_sum_exp(OneLane, const float* x, int count) {
    float top = -INFINITY, sum = 0;
    for (int begin = 0; begin < count; begin += step_words) {
        int words = std::min(step_words, count - begin);
        float before = top;
        top = largest(x + begin, words, top);
        float from = top == -INFINITY ? 0.0f : top;  // if all logits so far are -inf, the sum must not become NaN
        sum = sum * exp_of(before - from) + sum_of_exp(x + begin, words, from, x + count + begin);
    }
    return top + log_of(sum);
}

}  // namespace masquerade::cpu

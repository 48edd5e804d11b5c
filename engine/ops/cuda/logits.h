// SPDX-License-Identifier: MIT
// Functions for ops that compute logits over the whole vocabulary, for one block of rows at a time. They compute the
// number of rows of the next block, and the log-sum-exp of a row of logits.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cuda/kernel.cuh"

#include <algorithm>

namespace masquerade::DEVICE {

// A block has at most most_rows rows, and its f32 logits take at most most_bytes of memory. If even one row takes more
// memory, a block has one row. If gradients are computed, each block adds to the gradient of the whole output matrix w,
// that is, reads and writes all of it. The more rows a block has, the rarer this is.
constexpr std::int64_t most_rows = 2048, most_bytes = std::int64_t(256) << 20;

inline std::int64_t rows_of_next_block(std::int64_t left, std::int64_t V) {
    const std::int64_t fit = most_bytes / (std::int64_t(sizeof(float)) * std::max<std::int64_t>(V, 1));
    return std::min(left, std::max<std::int64_t>(1, std::min(most_rows, fit)));
}

// Returns exp(x) for -87 <= x <= 87, 0 for x < -87, and NaN for NaN.
HD float exp_or_zero(float x) { return x < -87.0f ? 0.0f : exp_inside(x); }

// The state of a log-sum-exp over numbers x: `top` is the largest x so far, and `sum` is the sum of exp(x - top). If
// there are no numbers yet, or if all are minus infinity, `top` is minus infinity and `sum` is 0. If an x is NaN, `sum`
// is NaN.
struct Peak {
    float top = -INFINITY, sum = 0;
};
// Returns the number that is subtracted from every x before the exponential, given the maximum `top` of all x. This is
// `top` itself or, if all x are minus infinity, 0, because the difference of two infinities is NaN.
HD float from_of(float top) { return top == -INFINITY ? 0.0f : top; }

// Adds n numbers to a Peak: finds the new maximum, multiplies the sum so far by exp(old maximum - new maximum), then
// adds the exponentials of the n numbers.
template <int n>
HD Peak with(Peak p, const float (&x)[n]) {
    float top = p.top;
    for (int k = 0; k < n; k++) top = fmaxf(top, x[k]);
    const float from = from_of(top);
    float sum = p.sum * exp_or_zero(p.top - from);
    for (int k = 0; k < n; k++) sum += exp_or_zero(x[k] - from);
    return {top, sum};
}
HD float sum_of_lanes(float x) {
    for (int d = 16; d > 0; d /= 2) x += lane_xor(x, d);
    return x;
}
// Merges the Peaks of the 32 lanes of a warp into the Peak of all their numbers. Every lane receives the result.
HD Peak peak_of_lanes(Peak p) {
    float top = p.top;
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, lane_xor(top, d));
    return {top, sum_of_lanes(p.sum * exp_or_zero(p.top - from_of(top)))};
}
// Returns log sum exp of the row x. The lanes of a warp compute it together; each lane reads four numbers at a time.
HD float log_sum_exp(WarpLanes lanes, const float* x, int count) {
    Peak peak;
    int i = lane_of(lanes);
    for (; i + 96 < count; i += 128) peak = with(peak, {x[i], x[i + 32], x[i + 64], x[i + 96]});
    for (; i < count; i += 32) peak = with(peak, {x[i]});
    peak = peak_of_lanes(peak);
    return peak.top + log_of(peak.sum);
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// For ops that compute logits over the whole vocabulary, for a block of rows at a time: the number of rows of the
// next block, and the log-sum-exp of a row of logits.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cuda/kernel.cuh"

#include <algorithm>

namespace masquerade::DEVICE {

// Limits of a block of rows. A block has many rows, so that adding to the gradient of w takes little time compared
// with the matrix product. Its f32 logits take at most most_bytes of memory, unless even one row takes more.
constexpr std::int64_t most_rows = 2048, most_bytes = std::int64_t(256) << 20;

inline std::int64_t rows_of_next_block(std::int64_t left, std::int64_t V) {
    const std::int64_t fit = most_bytes / (std::int64_t(sizeof(float)) * std::max<std::int64_t>(V, 1));
    return std::min(left, std::max<std::int64_t>(1, std::min(most_rows, fit)));
}

// The state of a log-sum-exp over numbers x: `top` is the largest x so far, and `sum` is the sum of exp(x - top). If
// there are no numbers yet, or if all are minus infinity, `top` is minus infinity and `sum` may have any value except
// NaN.
struct Peak {
    float top, sum;
};
HD float from_of(float top) { return top == -INFINITY ? 0.0f : top; }
// with() adds the number x to a Peak, both() merges two Peaks. If the largest number grows, the sum so far is
// multiplied by exp(old largest - new largest).
HD Peak with(Peak p, float x) {
    if (x > p.top) return {x, p.sum * exp_of(p.top - x) + 1};
    return {p.top, p.sum + exp_of(x - from_of(p.top))};
}
HD Peak both(Peak a, Peak b) {
    const float top = a.top > b.top ? a.top : b.top, from = from_of(top);
    return {top, a.sum * exp_of(a.top - from) + b.sum * exp_of(b.top - from)};
}
// Returns log sum exp of the row x, which the lanes of a warp compute together.
HD float log_sum_exp(WarpLanes lanes, const float* x, int count) {
    Peak peak{-INFINITY, 0};
    each(lanes, count, [&](int i) { peak = with(peak, x[i]); });
    for (int d = 16; d > 0; d /= 2) peak = both(peak, {lane_xor(peak.top, d), lane_xor(peak.sum, d)});
    return peak.top + log_of(peak.sum);
}

}  // namespace masquerade::DEVICE

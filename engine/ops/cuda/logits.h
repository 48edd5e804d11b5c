// SPDX-License-Identifier: MIT
// Logits of all words for blocks of rows: how large a block is, and the log of the sum of exp of a row.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cuda/kernel.cuh"

#include <algorithm>

namespace masquerade::DEVICE {

// The rows of a block: enough that adding to w1 costs little beside the product, few enough to fit into memory.
constexpr std::int64_t most_rows = 2048, most_bytes = std::int64_t(256) << 20;

inline std::int64_t rows_of_next_block(std::int64_t left, std::int64_t V) {
    const std::int64_t fit = most_bytes / (std::int64_t(sizeof(float)) * std::max<std::int64_t>(V, 1));
    return std::min(left, std::max<std::int64_t>(1, std::min(most_rows, fit)));
}

// sum = sum of exp(x - top) over some numbers x, top the largest of them. If there are no numbers, or only minus
// infinities, the sum does not count later, but must not be NaN.
struct Peak {
    float top, sum;
};
HD float from_of(float top) { return top == -INFINITY ? 0.0f : top; }
// The online rule: when a larger number comes, the sum so far is scaled to it.
HD Peak with(Peak p, float x) {
    if (x > p.top) return {x, p.sum * exp_of(p.top - x) + 1};
    return {p.top, p.sum + exp_of(x - from_of(p.top))};
}
HD Peak both(Peak a, Peak b) {
    const float top = a.top > b.top ? a.top : b.top, from = from_of(top);
    return {top, a.sum * exp_of(a.top - from) + b.sum * exp_of(b.top - from)};
}
// log sum exp x, the row of a warp
HD float log_sum_exp(WarpLanes lanes, const float* x, int count) {
    Peak peak{-INFINITY, 0};
    each(lanes, count, [&](int i) { peak = with(peak, x[i]); });
    for (int d = 16; d > 0; d /= 2) peak = both(peak, {lane_xor(peak.top, d), lane_xor(peak.sum, d)});
    return peak.top + log_of(peak.sum);
}

}  // namespace masquerade::DEVICE

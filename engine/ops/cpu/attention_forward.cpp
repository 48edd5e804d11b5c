// SPDX-License-Identifier: MIT
// The forward of attention in float: scores of a block of queries against the keys they see, softmax,
// weighted sums of the values.
#include "engine/ops/cpu/attention_block.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>

namespace masquerade::cpu {
using namespace blocks;
namespace {

// scores -> exp(score - top), 0 where a lane does not see. Returns their sums; `top` is the largest score.
Vector softmax_visits(const AttentionScratch& scratch, float* scores, Vector& top) {
    const Vector nothing = splat(-INFINITY);
    top = nothing;
    for (int t = 0; t < scratch.visits; t++) {
        Vector s = lanes_of(scratch.seen_by[t]) ? load(scores + t * lanes) : nothing;
        top = (s > top) | (s != s) ? s : top;
        store(scores + t * lanes, s);
    }
    Vector from = lanes_of(scratch.seeing) ? top : Vector{};
    for (int t = 0; t < scratch.visits; t++) store(scores + t * lanes, load(scores + t * lanes) - from);
    for (int i = 0; i < scratch.visits * lanes; i++) scores[i] = exp_of(scores[i]);
    Vector total{};
    for (int t = 0; t < scratch.visits; t++) total += load(scores + t * lanes);
    return total;
}

struct Memory;

template <class S>
void forward_document(const AttentionCall& call, DocumentRange document, int head, const View& y,
                      const View& lse) {
    AttentionScratch& scratch = attention_scratch();
    number_keys(call, document, scratch);
    const std::size_t P = std::size_t(padded(call.D)), keys_size = (std::size_t(scratch.rows) + 1) * P,
                      block_size = lanes * P, visits_size = (std::size_t(scratch.rows) + 4) * lanes;
    float* keys = workspace<Memory>(2 * keys_size + 3 * block_size + 2 * visits_size);
    float *values = keys + keys_size, *rows = values + keys_size, *columns = rows + block_size,
          *sums = columns + block_size, *weights = sums + block_size, *factors = weights + visits_size;
    pack_keys<S>(call, scratch, head, keys, values);
    for (int s = document.first; s < document.last; s++) {
        const QuerySegment& segment = call.graph.queries[s];
        for (int row = segment.begin; row < segment.end; row += lanes) {
            int count = std::min(lanes, segment.end - row);
            std::ptrdiff_t at = std::ptrdiff_t(row) * call.C + head * call.D;
            find_visits(call, segment, row, count, scratch);
            pack_block(call.q.as<S>() + at, call.C, count, float(call.scale), call.D, rows, columns);
            dot_visits(call.D, columns, keys, scratch, weights);
            Vector top, total = softmax_visits(scratch, weights, top);
            if (call.rule.dropout > 0) {
                draw_dropout(call, row, count, head, scratch, factors);
                for (int i = 0; i < scratch.visits * lanes; i++) weights[i] *= factors[i];
            }
            std::fill_n(sums, block_size, 0.0f);
            add_to_queries(count, int(P), scratch, weights, values, sums);
            for (int i = 0; i < count; i++) {
                bool sees = scratch.seeing >> i & 1;
                float factor = sees ? 1 / total[i] : 0;
                S* to = y.as<S>() + at + std::ptrdiff_t(i) * call.C;
                for (int d = 0; d < call.D; d++) to[d] = S(sums[i * P + d] * factor);
                lse.as<float>()[std::ptrdiff_t(row + i) * call.rule.heads + head] =
                    sees ? top[i] + log_of(total[i]) : -INFINITY;
            }
        }
    }
    forget_keys(scratch);
}

template <class S>
void forward(const AttentionCall& call, const View& y, const View& lse) {
    for (std::int64_t row = 0; row < call.q.rows(); row++)
        if (!call.covered[row]) {
            std::fill_n(y.as<S>() + row * call.C, call.C, S(0.0f));
            std::fill_n(lse.as<float>() + row * call.rule.heads, call.rule.heads, -INFINITY);
        }
    each_document_and_head(
        call, [&](DocumentRange document, int head) { forward_document<S>(call, document, head, y, lse); });
}

}  // namespace

void attention_forward_fast(const AttentionCall& call, const View& y, const View& lse) {
    if (call.q.dtype == DType::f32) forward<float>(call, y, lse);
    else forward<bfloat16>(call, y, lse);
}

}  // namespace masquerade::cpu

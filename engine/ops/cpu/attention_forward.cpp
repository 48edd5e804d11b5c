// SPDX-License-Identifier: MIT
// The forward of softmax attention in float arithmetic (f32 and bf16). For each block of query rows, it computes the
// scores of the keys that the queries see, the softmax, and the weighted sums of the values.
#include "engine/ops/cpu/attention_block.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>

namespace masquerade::cpu {
using namespace blocks;
namespace {

// Computes the softmax of a block, except for the division. Each query row of the block is a lane. Sets `top` to the
// largest score of the keys that the lane sees. Replaces each score by exp(score - top), times the dropout factor if
// `factors` is not null, or by 0 if the lane does not see the key. Returns each lane's sum of exp(score - top),
// without dropout factors.
Vector softmax_visits(const DocumentPlan& plan, const QueryBlock& block, const float* factors, float* scores,
                      Vector& top) {
    const Vector nothing = splat(-INFINITY);
    const KeyRun *begin = plan.runs.data() + block.first_run, *end = plan.runs.data() + block.last_run;
    top = nothing;
    float* at = scores;
    for (const KeyRun* run = begin; run != end; run++) {
        const Integers sees = lanes_of(run->seen_by);
        for (float* last = at + run->count * lanes; at != last; at += lanes) {
            Vector s = sees ? load(at) : nothing;
            top = s > top ? s : top;
        }
    }
    Vector total{};
    at = scores;
    for (const KeyRun* run = begin; run != end; run++) {
        const Integers sees = lanes_of(run->seen_by);
        for (float* last = at + run->count * lanes; at != last; at += lanes) {
            Vector e = sees ? exp_or_zero(load(at) - top) : Vector{};
            total += e;
            if (factors) e *= load(factors + (at - scores));
            store(at, e);
        }
    }
    return total;
}

struct Memory;

// Computes the forward of one document, for the query heads that share key/value head `group`.
template <class S>
void forward_heads(const AttentionCall& call, const DocumentPlan& plan, int group, const View& y, const View& lse) {
    const bool drops = call.rule.dropout > 0;
    const std::int64_t P = padded(call.D), keys_size = (plan.rows + overhang) * P, block_size = lanes * P,
                       visits_size = std::int64_t(plan.most_visits + overhang) * lanes;
    float* keys = workspace<Memory>(2 * keys_size + 2 * block_size + (drops ? 2 : 1) * visits_size);
    float *values = keys + keys_size, *rows = values + keys_size, *columns = rows + block_size,
          *weights = columns + block_size, *factors = drops ? weights + visits_size : nullptr;
    pack_keys<S>(call, plan, group, keys, values);
    for (int head = group * call.heads.readers(), end = head + call.heads.readers(); head < end; head++) {
        const std::ptrdiff_t next = next_queries(call, head, plan.queries);
        for (const QueryBlock& block : plan.blocks) {
            const std::ptrdiff_t at = std::ptrdiff_t(block.row) * call.C + head * call.D;
            pack_block(call.q.as<S>() + at, call.C, block.count, float(call.scale), call.D, next, rows, columns);
            dot_keys(plan, block, call.D, columns, keys, weights);
            if (drops) draw_dropout(call, plan, block, head, factors);
            Vector top, total = softmax_visits(plan, block, factors, weights, top);
            sum_over_keys(plan, block, int(P), weights, values, rows);
            alignas(64) float factor[lanes], log_sum[lanes];
            const Integers sees = lanes_of(block.seeing);
            total = sees ? total : splat(1);
            store(factor, sees ? 1 / total : Vector{});
            store(log_sum, total);
            for (int i = 0; i < lanes; i++) log_sum[i] = log_of(log_sum[i]);
            store(log_sum, top + load(log_sum));  // minus infinity for a row that sees no key
            for (int i = 0; i < block.count; i++) {
                S* row = y.as<S>() + at + std::ptrdiff_t(i) * call.C;
                put_row(row, rows + i * P, call.D, factor[i], false);
                fetch(row + next, call.D);
                lse.as<float>()[std::ptrdiff_t(block.row + i) * call.rule.heads + head] = log_sum[i];
            }
        }
    }
}

template <class S>
void forward(const AttentionCall& call, const View& y, const View& lse) {
    for (std::int64_t row = 0; row < call.q.rows(); row++)
        if (!call.covered[row]) {
            std::fill_n(y.as<S>() + row * call.C, call.C, S(0.0f));
            std::fill_n(lse.as<float>() + row * call.rule.heads, call.rule.heads, -INFINITY);
        }
    each_document_and_head(call,
                           [&](const DocumentPlan& plan, int group) { forward_heads<S>(call, plan, group, y, lse); });
}

}  // namespace

void attention_forward_fast(const AttentionCall& call, const View& y, const View& lse) {
    if (call.q.dtype == DType::f32)
        forward<float>(call, y, lse);
    else
        forward<bfloat16>(call, y, lse);
}

}  // namespace masquerade::cpu

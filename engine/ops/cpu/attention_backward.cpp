// SPDX-License-Identifier: MIT
// The backward of softmax attention in float arithmetic (f32 and bf16). For each block of query rows, it computes the
// probabilities again from the scores and lse, the log-sum-exp of each row's scores, which the forward has stored.
#include "engine/ops/cpu/attention_block.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>

namespace masquerade::cpu {
using namespace blocks;
namespace {

struct Memory;

// `p` and `ds` contain a number for each key that the block visits and each lane. A lane is one query row of the block.
// The visited keys are the keys that at least one of these rows sees.
//     on entry:   p = q.k / sqrt(D), the score;  ds = dy.v
//     on return:  p = e keep;  ds = e (dp - sum of e dp over the keys)
// Here e = exp(score - lse) is the probability, keep is the dropout factor, and dp = keep dy.v is the gradient of e. On
// return, `p` and `ds` are 0 if the lane does not see the key.
void softmax_grad_visits(const DocumentPlan& plan, const QueryBlock& block, Vector lse, const float* factors, float* p,
                         float* ds) {
    Vector delta{};
    std::ptrdiff_t t = 0;
    for (int r = block.first_run; r < block.last_run; r++) {
        const Integers sees = lanes_of(plan.runs[r].seen_by);
        for (const std::ptrdiff_t end = t + plan.runs[r].count * lanes; t != end; t += lanes) {
            Vector e = sees ? exp_or_zero(load(p + t) - lse) : Vector{}, dp = sees ? load(ds + t) : Vector{};
            if (factors) dp *= load(factors + t);
            delta = multiply_add(e, dp, delta);
            store(p + t, e);
            store(ds + t, dp);
        }
    }
    const std::ptrdiff_t size = t;
    for (t = 0; t < size; t += lanes) {
        Vector e = load(p + t);
        store(ds + t, e * (load(ds + t) - delta));
        if (factors) store(p + t, e * load(factors + t));
    }
}

// Computes the backward of one document, for the query heads that share key/value head `group`.
template <class S>
void backward_heads(const AttentionCall& call, const KeyOwners& owners, const DocumentPlan& plan, int group,
                    const View& dy, const View& lse, const Grad& dq, const Grads& dkv) {
    const bool drops = call.rule.dropout > 0;
    const std::int64_t P = padded(call.D), keys_size = (plan.rows + overhang) * P, block_size = lanes * P,
                       visits_size = std::int64_t(plan.most_visits + overhang) * lanes;
    float* keys = workspace<Memory>(4 * keys_size + 5 * block_size + (drops ? 3 : 2) * visits_size);
    float *values = keys + keys_size, *dkeys = values + keys_size, *dvalues = dkeys + keys_size,
          *q_rows = dvalues + keys_size, *q_columns = q_rows + block_size, *dy_rows = q_columns + block_size,
          *dy_columns = dy_rows + block_size, *sums = dy_columns + block_size, *p = sums + block_size,
          *ds = p + visits_size, *factors = drops ? ds + visits_size : nullptr;
    pack_keys<S>(call, plan, group, keys, values);
    std::fill_n(dkeys, 2 * keys_size, 0.0f);
    const std::ptrdiff_t next_key = next_keys(call, group, plan.rows), kv_columns = call.heads.kv_columns(),
                         to_values = call.heads.values();
    for (int head = group * call.heads.readers(), end = head + call.heads.readers(); head < end; head++) {
        const std::ptrdiff_t next = next_queries(call, head, plan.queries);
        for (const QueryBlock& block : plan.blocks) {
            const std::ptrdiff_t at = std::ptrdiff_t(block.row) * call.C + head * call.D;
            pack_block(call.q.as<S>() + at, call.C, block.count, float(call.scale), call.D, next, q_rows, q_columns);
            pack_block(dy.as<S>() + at, call.C, block.count, 1.0f, call.D, next, dy_rows, dy_columns);
            dot_keys(plan, block, call.D, q_columns, keys, p);
            dot_keys(plan, block, call.D, dy_columns, values, ds);
            if (drops) draw_dropout(call, plan, block, head, factors);
            Vector log_sums{};
            for (int i = 0; i < block.count; i++)
                log_sums[i] = lse.as<float>()[std::ptrdiff_t(block.row + i) * call.rule.heads + head];
            softmax_grad_visits(plan, block, log_sums, factors, p, ds);
            if (dq) {
                sum_over_keys(plan, block, int(P), ds, keys, sums);
                for (int i = 0; i < block.count; i++) {
                    S* row = dq.as<S>() + at + std::ptrdiff_t(i) * call.C;
                    put_row(row, sums + i * P, call.D, float(call.scale), dq.add);
                    fetch(row + next, call.D);
                }
            }
            add_to_keys(plan, block, int(P), ds, q_rows, dkeys);
            add_to_keys(plan, block, int(P), p, dy_rows, dvalues);
        }
    }
    for (int index : plan.key_segments) {
        const KeySegment& segment = call.graph.keys[index];
        if (segment.source >= dkv.count || !dkv[segment.source]) continue;
        const Grad& to = dkv[segment.source];
        std::int64_t from = plan.first_row[index] * P;
        for (int j = segment.begin; j < segment.end; j++, from += P) {
            S* row = to.as<S>() + j * kv_columns + group * call.D;
            bool add = to.add || (*owners.of[segment.source])[j] != index;
            put_row(row, dkeys + from, call.D, 1.0f, add);
            put_row(row + to_values, dvalues + from, call.D, 1.0f, add);
            fetch(row + next_key, call.D);
            fetch(row + to_values + next_key, call.D);
        }
    }
}

template <class S>
void backward(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse, const Grad& dq,
              const Grads& dkv) {
    if (dq && !dq.add)
        for (std::int64_t row = 0; row < call.q.rows(); row++)
            if (!call.covered[row]) std::fill_n(dq.as<S>() + row * call.C, call.C, S(0.0f));
    for (int s = 0; s < dkv.count; s++)
        if (dkv[s] && !dkv[s].add)
            for (std::int64_t row = 0; row < dkv[s].view.rows(); row++)
                if ((*owners.of[s])[row] < 0)
                    std::fill_n(dkv[s].as<S>() + row * call.heads.kv_columns(), call.heads.kv_columns(), S(0.0f));
    each_document_and_head(call, [&](const DocumentPlan& plan, int group) {
        backward_heads<S>(call, owners, plan, group, dy, lse, dq, dkv);
    });
}

}  // namespace

void attention_backward_fast(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse,
                             const Grad& dq, const Grads& dkv) {
    if (call.q.dtype == DType::f32)
        backward<float>(call, owners, dy, lse, dq, dkv);
    else
        backward<bfloat16>(call, owners, dy, lse, dq, dkv);
}

}  // namespace masquerade::cpu

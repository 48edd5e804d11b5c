// SPDX-License-Identifier: MIT
// The backward of attention in float. The probabilities are found again from lse, block by block as in the
// forward.
#include "engine/ops/cpu/attention_block.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>

namespace masquerade::cpu {
using namespace blocks;
namespace {

struct Memory;

// In: scores s = q.k / sqrt(D) in `p`, dy.v in `ds`. Out: p = exp(s - lse), ds = p (dp - sum of p dp), where
// dp = dy.v times the dropout factors, if any; 0 where a lane does not see.
void softmax_grad_visits(const AttentionScratch& scratch, Vector lse, const float* factors, float* p,
                         float* ds) {
    const int size = scratch.visits * lanes;
    for (int t = 0; t < size; t += lanes) store(p + t, load(p + t) - lse);
    for (int i = 0; i < size; i++) p[i] = exp_of(p[i]);
    Vector delta{};
    for (int t = 0; t < scratch.visits; t++) {
        Integers sees = lanes_of(scratch.seen_by[t]);
        Vector q = sees ? load(p + t * lanes) : Vector{}, dp = sees ? load(ds + t * lanes) : Vector{};
        if (factors) dp *= load(factors + t * lanes);
        delta = multiply_add(q, dp, delta);
        store(p + t * lanes, q);
        store(ds + t * lanes, dp);
    }
    for (int t = 0; t < size; t += lanes) store(ds + t, load(p + t) * (load(ds + t) - delta));
}

template <class S>
void put_row(S* to, const float* from, int D, float factor, bool add) {
    for (int d = 0; d < D; d++) put(to[d], from[d] * factor, add);
}

template <class S>
void backward_document(const AttentionCall& call, const KeyOwners& owners, DocumentRange document, int head,
                       const View& dy, const View& lse, const Grad& dq, const Grads& dkv) {
    AttentionScratch& scratch = attention_scratch();
    number_keys(call, document, scratch);
    const std::size_t P = std::size_t(padded(call.D)), keys_size = (std::size_t(scratch.rows) + 1) * P,
                      block_size = lanes * P, visits_size = (std::size_t(scratch.rows) + 4) * lanes;
    float* keys = workspace<Memory>(4 * keys_size + 5 * block_size + 3 * visits_size);
    float *values = keys + keys_size, *dkeys = values + keys_size, *dvalues = dkeys + keys_size,
          *q_rows = dvalues + keys_size, *q_columns = q_rows + block_size, *dy_rows = q_columns + block_size,
          *dy_columns = dy_rows + block_size, *sums = dy_columns + block_size, *p = sums + block_size,
          *ds = p + visits_size, *factors = ds + visits_size;
    pack_keys<S>(call, scratch, head, keys, values);
    std::fill_n(dkeys, 2 * keys_size, 0.0f);
    for (int s = document.first; s < document.last; s++) {
        const QuerySegment& segment = call.graph.queries[s];
        for (int row = segment.begin; row < segment.end; row += lanes) {
            int count = std::min(lanes, segment.end - row);
            std::ptrdiff_t at = std::ptrdiff_t(row) * call.C + head * call.D;
            find_visits(call, segment, row, count, scratch);
            pack_block(call.q.as<S>() + at, call.C, count, float(call.scale), call.D, q_rows, q_columns);
            pack_block(dy.as<S>() + at, call.C, count, 1.0f, call.D, dy_rows, dy_columns);
            dot_visits(call.D, q_columns, keys, scratch, p);
            dot_visits(call.D, dy_columns, values, scratch, ds);
            bool drops = call.rule.dropout > 0;
            if (drops) draw_dropout(call, row, count, head, scratch, factors);
            Vector log_sums{};
            for (int i = 0; i < count; i++)
                log_sums[i] = lse.as<float>()[std::ptrdiff_t(row + i) * call.rule.heads + head];
            softmax_grad_visits(scratch, log_sums, drops ? factors : nullptr, p, ds);
            if (dq) {
                std::fill_n(sums, block_size, 0.0f);
                add_to_queries(count, int(P), scratch, ds, keys, sums);
                for (int i = 0; i < count; i++)
                    put_row(dq.view.as<S>() + at + std::ptrdiff_t(i) * call.C, sums + i * P, call.D,
                            float(call.scale), dq.add);
            }
            add_to_keys(count, int(P), scratch, ds, q_rows, dkeys);
            if (drops)
                for (int i = 0; i < scratch.visits * lanes; i++) p[i] *= factors[i];
            add_to_keys(count, int(P), scratch, p, dy_rows, dvalues);
        }
    }
    for (int index : scratch.key_segments) {
        const KeySegment& segment = call.graph.keys[index];
        if (segment.source >= dkv.count || !dkv[segment.source]) continue;
        const Grad& to = dkv[segment.source];
        std::size_t from = std::size_t(scratch.first_row[index] - 1) * P;
        for (int j = segment.begin; j < segment.end; j++, from += P) {
            S* row = to.view.as<S>() + std::ptrdiff_t(j) * 2 * call.C + head * call.D;
            bool add = to.add || (*owners.of[segment.source])[j] != index;
            put_row(row, dkeys + from, call.D, 1.0f, add);
            put_row(row + call.C, dvalues + from, call.D, 1.0f, add);
        }
    }
    forget_keys(scratch);
}

template <class S>
void backward(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse,
              const Grad& dq, const Grads& dkv) {
    if (dq && !dq.add)
        for (std::int64_t row = 0; row < call.q.rows(); row++)
            if (!call.covered[row]) std::fill_n(dq.view.as<S>() + row * call.C, call.C, S(0.0f));
    for (int s = 0; s < dkv.count; s++)
        if (dkv[s] && !dkv[s].add)
            for (std::int64_t row = 0; row < dkv[s].view.rows(); row++)
                if ((*owners.of[s])[row] < 0)
                    std::fill_n(dkv[s].view.as<S>() + row * 2 * call.C, 2 * call.C, S(0.0f));
    each_document_and_head(call, [&](DocumentRange document, int head) {
        backward_document<S>(call, owners, document, head, dy, lse, dq, dkv);
    });
}

}  // namespace

void attention_backward_fast(const AttentionCall& call, const KeyOwners& owners, const View& dy,
                             const View& lse, const Grad& dq, const Grads& dkv) {
    if (call.q.dtype == DType::f32) backward<float>(call, owners, dy, lse, dq, dkv);
    else backward<bfloat16>(call, owners, dy, lse, dq, dkv);
}

}  // namespace masquerade::cpu

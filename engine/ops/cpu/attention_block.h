// SPDX-License-Identifier: MIT
// The inner loops of softmax attention in float arithmetic, for one head and a block of query rows of one segment.
//
// Each query row of a block occupies one lane of a vector, and every sum over keys adds one key after another, in the
// order in which the plan lists the keys. The bits of a row's results therefore depend only on the row itself and the
// keys that it sees. The bits do not depend on the other rows of the block, on keys that only other rows see (the lane
// skips these keys), on where the block begins, or on which thread computes it.
#pragma once
#include "engine/ops/cpu/attention_plan.h"
#include "engine/ops/cpu/parallel.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace masquerade::cpu::blocks {
using namespace vectors;

// Calls f(plan, head) for every document and every key/value head, in parallel. Calls are grouped into pieces that
// are large enough to be worth a thread. One call computes all query heads that share the key/value head, so that it
// packs the keys once and sums their gradients in a fixed order.
template <class F>
void each_document_and_head(const AttentionCall& call, F f) {
    std::int64_t pairs = 0;  // upper bound of the number of pairs of a query and a key that it sees
    for (const QuerySegment& q : call.graph.queries)
        for (int v = q.sees_begin; v < q.sees_end; v++) {
            const KeySegment& key = call.graph.keys[call.graph.sees[v]];
            pairs += std::int64_t(q.end - q.begin) * (key.end - key.begin);
        }
    const int heads = call.heads.of_keys;
    const std::int64_t all = std::int64_t(call.documents.size()) * heads;
    const std::int64_t pieces = std::min({all, std::int64_t(16) * threads(), 1 + pairs * call.C / 150000});
    parallel_each(pieces, [&](std::int64_t piece) {
        const DocumentPlan* plan = nullptr;
        for (std::int64_t i = all * piece / pieces; i < all * (piece + 1) / pieces; i++) {
            DocumentRange document = call.documents[i / heads];
            int head = int(i % heads);
            if (!plan || head == 0) plan = &plan_document(call, document);
            f(*plan, head);
        }
    });
}

// Returns P, the length of a packed row: D rounded up to whole vectors. The numbers past D are 0.
inline int padded(int D) { return (D + lanes - 1) / lanes * lanes; }

// Returns the offset, in numbers, from the columns of `head` in a row to the columns that are needed next and should be
// prefetched. These are the columns of the next head in the same row. After the last head, they are the columns of the
// first head in the row that is `rows` rows further, in the next document.
inline std::ptrdiff_t next_turn(int head, int heads, int D, int rows, std::ptrdiff_t stride) {
    return head + 1 < heads ? D : rows * stride - std::ptrdiff_t(head) * D;
}
inline std::ptrdiff_t next_queries(const AttentionCall& call, int head, int rows) {
    return next_turn(head, call.heads.of_queries, call.D, rows, call.C);
}
inline std::ptrdiff_t next_keys(const AttentionCall& call, int head, int rows) {
    return next_turn(head, call.heads.of_keys, call.D, rows, call.heads.kv_columns());
}
// Prefetches D numbers into the second-level cache.
template <class S>
inline void fetch(const S* row, int D) {
    constexpr int line = 64 / sizeof(S);
    for (int d = 0; d < D; d += line) __builtin_prefetch(row + d, 0, 2);
}

template <class S>
inline void pack_row(const S* from, float factor, int D, float* to) {
    int d = 0;
    for (; d + lanes <= D; d += lanes) store(to + d, widen(from + d) * factor);
    if (d == D) return;
    store(to + d, Vector{});
    for (; d < D; d++) to[d] = float(from[d]) * factor;
}

template <class S>
inline void put_row(S* to, const float* from, int D, float factor, bool add) {
    int d = 0;
    for (; d + lanes <= D; d += lanes) {
        Vector x = load(from + d) * factor;
        narrow(to + d, add ? widen(to + d) + x : x);
    }
    for (; d < D; d++) put(to[d], from[d] * factor, add);
}

// The products of a block may read and write up to this many keys past the last one. `overhang` rows of zeros therefore
// follow the packed rows, and an array with one vector for each key that the block visits has room for `overhang` more
// vectors.
constexpr int overhang = 7;

// Packs one head of the document's keys and values into the arrays `keys` and `values`. Both have plan.rows + overhang
// rows of P numbers.
template <class S>
void pack_keys(const AttentionCall& call, const DocumentPlan& plan, int head, float* keys, float* values) {
    const int P = padded(call.D);
    const std::ptrdiff_t next = next_keys(call, head, plan.rows), stride = call.heads.kv_columns(),
                         to_values = call.heads.values();
    for (int index : plan.key_segments) {
        const KeySegment& segment = call.graph.keys[index];
        const S* kv = call.kv[segment.source].as<S>() + segment.begin * stride + head * call.D;
        std::ptrdiff_t at = std::ptrdiff_t(plan.first_row[index]) * P;
        for (int j = segment.begin; j < segment.end; j++, kv += stride, at += P) {
            pack_row(kv, 1.0f, call.D, keys + at);
            pack_row(kv + to_values, 1.0f, call.D, values + at);
            fetch(kv + next, call.D);
            fetch(kv + to_values + next, call.D);
        }
    }
    std::ptrdiff_t end = std::ptrdiff_t(plan.rows) * P;
    for (int d = 0; d < overhang * P; d += lanes) store(keys + end + d, Vector{}), store(values + end + d, Vector{});
}

// Packs one head of the `count` rows of a block, multiplied by `factor`, into rows(lanes,P), and the transpose into
// columns(P,lanes). Rows beyond `count` become 0. For each row, prefetches the numbers at offset `next` from the row.
template <class S>
void pack_block(const S* from, int C, int count, float factor, int D, std::ptrdiff_t next, float* rows,
                float* columns) {
    const int P = padded(D);
    for (int i = 0; i < count; i++, from += C) {
        pack_row(from, factor, D, rows + i * P);
        fetch(from + next, D);
    }
    for (int d = count * P; d < lanes * P; d += lanes) store(rows + d, Vector{});
    for (int d = 0; d < P; d += lanes) {
        Vector v[lanes];
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) v[i] = load(rows + i * P + d);
        transpose(v);
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) store(columns + (d + i) * lanes, v[i]);
    }
}

// Sets products[v][lane] to the dot product of the packed row of the block's v-th visited key and column `lane` of
// `columns`, summed over D in order. The visited keys of a block are the keys that at least one of its query rows sees.
void dot_keys(const DocumentPlan& plan, const QueryBlock& block, int D, const float* columns, const float* packed,
              float* products);
// Sets to[query][...] to the sum over v of weights[v][query] * (packed row of the block's v-th visited key)[...].
void sum_over_keys(const DocumentPlan& plan, const QueryBlock& block, int P, const float* weights, const float* packed,
                   float* to);
// For each v, adds to the packed row of the block's v-th visited key the sum over the block's queries of
// weights[v][query] * from[query][...].
void add_to_keys(const DocumentPlan& plan, const QueryBlock& block, int P, const float* weights, const float* from,
                 float* packed);
// Sets factors[v][lane] to 0 if dropout removes the lane's probability for the v-th key that the block visits, else to
// AttentionDropout::kept.
void draw_dropout(const AttentionCall& call, const DocumentPlan& plan, const QueryBlock& block, int head,
                  float* factors);

}  // namespace masquerade::cpu::blocks

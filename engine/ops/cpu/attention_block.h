// SPDX-License-Identifier: MIT
// The inner parts of attention in float, for one head and a block of query rows of one segment.
//
// The queries of a block are the lanes of a vector, and every sum over keys runs key after key in the order
// of visit. So a row's bits depend on the keys that it sees and on nothing beside: neither on the other rows
// of the block, nor on keys that only those see (a lane skips them), nor on where a block begins or which
// thread has it.
#pragma once
#include "engine/ops/cpu/attention_plan.h"
#include "engine/ops/cpu/parallel.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace masquerade::cpu::blocks {
using namespace vectors;

// Calls f(plan of a document, head of keys) for all of them, in pieces that are worth starting a thread for. The heads of
// queries that read one head of keys stay in one call: it packs the keys once, and sums their gradients in one order.
template <class F>
void each_document_and_head(const AttentionCall& call, F f) {
    std::int64_t pairs = 0;  // of queries and keys, as if all saw all
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
            DocumentRange document = call.documents[std::size_t(i / heads)];
            int head = int(i % heads);
            if (!plan || head == 0) plan = &plan_document(call, document);
            f(*plan, head);
        }
    });
}

// D, rounded up to whole vectors: the length of a packed row. What lies past D is zero.
inline int padded(int D) { return (D + lanes - 1) / lanes * lanes; }

// How far from a row's columns of a head those lie that are needed next: the columns of the next of `heads` heads, or of
// the first head in the next document if that document is as long. They are fetched now, and are in the cache by then.
inline std::ptrdiff_t next_turn(int head, int heads, int D, int rows, std::ptrdiff_t stride) {
    return head + 1 < heads ? D : rows * stride - std::ptrdiff_t(head) * D;
}
inline std::ptrdiff_t next_queries(const AttentionCall& call, int head, int rows) {
    return next_turn(head, call.heads.of_queries, call.D, rows, call.C);
}
inline std::ptrdiff_t next_keys(const AttentionCall& call, int head, int rows) {
    return next_turn(head, call.heads.of_keys, call.D, rows, call.heads.kv_columns());
}
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

// The products of a block may run this many keys past the last: packed rows are followed by as many of
// nobody, all zero, and what holds a vector for every visit by as much room.
constexpr int overhang = 7;

// Keys and values of a document's packed rows, for a head of them.
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

// rows(lanes,P) of a block, and columns(P,lanes), the same transposed; rows past `count` are zero.
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

// products[visit][lane] = key of the visit . column of the lane, over D in order.
void dot_keys(const DocumentPlan& plan, const QueryBlock& block, int D, const float* columns, const float* packed,
              float* products);
// to[query][...] = sum over visits of weights[visit][query] * packed key of the visit [...]
void sum_over_keys(const DocumentPlan& plan, const QueryBlock& block, int P, const float* weights, const float* packed,
                   float* to);
// packed key of a visit [...] += sum over queries of weights[visit][query] * from[query][...]
void add_to_keys(const DocumentPlan& plan, const QueryBlock& block, int P, const float* weights, const float* from,
                 float* packed);
// factors[visit][lane]: 0 where dropout takes a probability away, else 1 / (1 - rate). `drawn` is as large.
void draw_dropout(const AttentionCall& call, const DocumentPlan& plan, const QueryBlock& block, int head,
                  float* factors, float* drawn);

}  // namespace masquerade::cpu::blocks

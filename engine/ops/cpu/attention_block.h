// SPDX-License-Identifier: MIT
// The inner parts of attention in float, for one head and a block of query rows of one segment.
//
// The queries of a block are the lanes of a vector, and every sum over keys runs key after key in the order
// of visit. So a row's bits depend on the keys that it sees and on nothing beside: neither on the other rows
// of the block, nor on keys that only those see (a lane skips them), nor on where a block begins or which
// thread has it.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cpu/attention_call.h"
#include "engine/ops/cpu/parallel.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace masquerade::cpu::blocks {

#ifdef __AVX512F__
constexpr int lanes = 16, vectors_at_once = 4;  // 32 registers
#elif defined(__AVX__)
constexpr int lanes = 8, vectors_at_once = 2;  // 16
#else
constexpr int lanes = 4, vectors_at_once = 2;
#endif
typedef float Vector __attribute__((vector_size(4 * lanes)));
typedef std::int32_t Integers __attribute__((vector_size(4 * lanes)));
typedef std::uint32_t Words __attribute__((vector_size(4 * lanes)));

// 64-byte aligned.
inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }
inline Vector splat(float x) { return x - Vector{}; }

// a b + c, rounded once where the machine can: the loop becomes one instruction.
inline Vector multiply_add(Vector a, Vector b, Vector c) {
    for (int i = 0; i < lanes; i++) c[i] = mul_add(a[i], b[i], c[i]);
    return c;
}

// The lanes whose bit is set, as a mask for choice by ?:.
inline Integers lanes_of(unsigned bits) {
    Integers bit;
    for (int i = 0; i < lanes; i++) bit[i] = 1 << i;
    return (bit & std::int32_t(bits)) != 0;
}

// Floats and integers of one thread that only grow.
struct AttentionScratch {
    // The keys of a document, one after the other; the last row, past all of them, is nobody's.
    std::vector<int> key_segments;  // in the order of their first visit
    std::vector<int> first_row;     // one more than its first packed row, of every key segment; 0: not seen
    int rows = 0;

    // What a block visits, in order: packed rows, and which lanes see each. Padded to a multiple of 4 with
    // visits of nobody's row by no lane.
    std::vector<int> visited;
    std::vector<std::uint16_t> seen_by, toggled;
    int visits = 0;
    unsigned seeing = 0;  // lanes that see anything
};
AttentionScratch& attention_scratch();

// Gives the key segments of a document their packed rows, and takes them back.
void number_keys(const AttentionCall& call, DocumentRange document, AttentionScratch& scratch);
void forget_keys(AttentionScratch& scratch);
// Finds what query rows [row, row + count), count <= lanes, visit.
void find_visits(const AttentionCall& call, const QuerySegment& segment, int row, int count,
                 AttentionScratch& scratch);
// factors[visit][lane]: 0 where dropout takes a probability away, else 1 / (1 - rate).
void draw_dropout(const AttentionCall& call, int row, int count, int head, const AttentionScratch& scratch,
                  float* factors);

// Calls f(document, head) for all of them, in pieces that are worth a thread's while.
template <class F>
void each_document_and_head(const AttentionCall& call, F f) {
    std::int64_t pairs = 0;  // of queries and keys, as if all saw all
    for (const QuerySegment& q : call.graph.queries)
        for (int v = q.sees_begin; v < q.sees_end; v++) {
            const KeySegment& key = call.graph.keys[call.graph.sees[v]];
            pairs += std::int64_t(q.end - q.begin) * (key.end - key.begin);
        }
    const int heads = call.rule.heads;
    const std::int64_t all = std::int64_t(call.documents.size()) * heads;
    const std::int64_t pieces = std::min({all, std::int64_t(16) * threads(), 1 + pairs * call.C / 100000});
    parallel_each(pieces, [&](std::int64_t piece) {
        for (std::int64_t i = all * piece / pieces; i < all * (piece + 1) / pieces; i++)
            f(call.documents[std::size_t(i / heads)], int(i % heads));
    });
}

// D, rounded up to whole vectors: the length of a packed row. What lies past D is zero.
inline int padded(int D) { return (D + lanes - 1) / lanes * lanes; }

template <class S>
void pack_row(const S* from, float factor, int D, float* to) {
    for (int d = 0; d < D; d++) to[d] = float(from[d]) * factor;
    for (int d = D; d < padded(D); d++) to[d] = 0;
}

// Keys and values of a document's packed rows, for a head.
template <class S>
void pack_keys(const AttentionCall& call, const AttentionScratch& scratch, int head, float* keys,
               float* values) {
    int P = padded(call.D);
    for (int index : scratch.key_segments) {
        const KeySegment& segment = call.graph.keys[index];
        const S* kv =
            call.kv[segment.source].as<S>() + std::int64_t(segment.begin) * 2 * call.C + head * call.D;
        std::ptrdiff_t at = std::ptrdiff_t(scratch.first_row[index] - 1) * P;
        for (int j = segment.begin; j < segment.end; j++, kv += 2 * call.C, at += P) {
            pack_row(kv, 1.0f, call.D, keys + at);
            pack_row(kv + call.C, 1.0f, call.D, values + at);
        }
    }
    for (int d = 0; d < P; d++)
        keys[std::ptrdiff_t(scratch.rows) * P + d] = values[std::ptrdiff_t(scratch.rows) * P + d] = 0;
}

// One step of a transpose: elements whose index has bit N change places between two rows N apart.
template <int N, int... I>
inline void exchange(Vector& a, Vector& b, std::integer_sequence<int, I...>) {
    Vector low = __builtin_shuffle(a, b, Integers{(I & N ? lanes + I - N : I)...});
    b = __builtin_shuffle(a, b, Integers{(I & N ? lanes + I : I + N)...});
    a = low;
}
template <int N>
inline void transpose(Vector (&v)[lanes]) {
    if constexpr (N < lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++)
            if (!(i & N)) exchange<N>(v[i], v[i + N], std::make_integer_sequence<int, lanes>{});
        transpose<2 * N>(v);
    }
}

// rows(lanes,P) of a block, and columns(P,lanes), the same transposed; rows past `count` are zero.
template <class S>
void pack_block(const S* from, int C, int count, float factor, int D, float* rows, float* columns) {
    int P = padded(D);
    for (int i = 0; i < lanes; i++)
        if (i < count) pack_row(from + std::ptrdiff_t(i) * C, factor, D, rows + i * P);
        else
            for (int d = 0; d < P; d++) rows[i * P + d] = 0;
    for (int d = 0; d < P; d += lanes) {
        Vector v[lanes];
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) v[i] = load(rows + i * P + d);
        transpose<1>(v);
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) store(columns + (d + i) * lanes, v[i]);
    }
}

// products[visit][lane] = row . column of the lane, over D in order. Four or eight visits at a time keep the
// multiply-adds of one from waiting for those of another.
template <int Together>
inline void dot_rows(int D, int P, const float* columns, const float* packed, const int* visited,
                     float* products) {
    const float* row[Together];
    Vector sum[Together] = {};
#pragma GCC unroll 8
    for (int t = 0; t < Together; t++) row[t] = packed + std::ptrdiff_t(visited[t]) * P;
    for (int d = 0; d < D; d++) {
        Vector x = load(columns + d * lanes);
#pragma GCC unroll 8
        for (int t = 0; t < Together; t++) sum[t] = multiply_add(splat(row[t][d]), x, sum[t]);
    }
#pragma GCC unroll 8
    for (int t = 0; t < Together; t++) store(products + t * lanes, sum[t]);
}
inline void dot_visits(int D, const float* columns, const float* packed, const AttentionScratch& scratch,
                       float* products) {
    int t = 0, P = padded(D);
    for (; t + 8 <= scratch.visits; t += 8)
        dot_rows<8>(D, P, columns, packed, scratch.visited.data() + t, products + t * lanes);
    if (t < scratch.visits)
        dot_rows<4>(D, P, columns, packed, scratch.visited.data() + t, products + t * lanes);
}

// to(a)[...] += sum over steps of weight(step, a) * from(step)[...], step after step, for the a < Rows whose
// bit in which(step) is set; P columns.
template <int Rows, int Vectors, class Which, class Weight, class From, class To>
inline void add_products(int steps, int column, Which which, Weight weight, From from, To to) {
    constexpr unsigned all = (1u << Rows) - 1;
    Vector sum[Rows][Vectors];
#pragma GCC unroll 4
    for (int a = 0; a < Rows; a++)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; v++) sum[a][v] = load(to(a) + column + v * lanes);
    for (int step = 0; step < steps; step++) {
        unsigned bits = which(step);
        if (bits == 0) continue;
        const float* x = from(step) + column;
        if (bits == all) {
#pragma GCC unroll 4
            for (int a = 0; a < Rows; a++)
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; v++)
                    sum[a][v] = multiply_add(splat(weight(step, a)), load(x + v * lanes), sum[a][v]);
        } else {
#pragma GCC unroll 4
            for (int a = 0; a < Rows; a++)
                if (bits >> a & 1)
#pragma GCC unroll 4
                    for (int v = 0; v < Vectors; v++)
                        sum[a][v] = multiply_add(splat(weight(step, a)), load(x + v * lanes), sum[a][v]);
        }
    }
#pragma GCC unroll 4
    for (int a = 0; a < Rows; a++)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; v++) store(to(a) + column + v * lanes, sum[a][v]);
}
template <int Rows, class Which, class Weight, class From, class To>
inline void add_products(int steps, int P, Which which, Weight weight, From from, To to) {
    constexpr int most = vectors_at_once;
    int column = 0;
    for (; column + most * lanes <= P; column += most * lanes)
        add_products<Rows, most>(steps, column, which, weight, from, to);
    for (; column + 2 * lanes <= P; column += 2 * lanes)
        add_products<Rows, 2>(steps, column, which, weight, from, to);
    for (; column < P; column += lanes) add_products<Rows, 1>(steps, column, which, weight, from, to);
}

// to[query][...] += sum over visits of weights[visit][query] * packed[visited][...]
inline void add_to_queries(int count, int P, const AttentionScratch& scratch, const float* weights,
                           const float* packed, float* to) {
    const std::uint16_t* seen_by = scratch.seen_by.data();
    const int* visited = scratch.visited.data();
    auto from = [=](int t) { return packed + std::ptrdiff_t(visited[t]) * P; };
    for (int i = 0; i < count; i += 4)
        add_products<4>(
            scratch.visits, P, [=](int t) { return unsigned(seen_by[t]) >> i & 15u; },
            [=](int t, int a) { return weights[t * lanes + i + a]; }, from,
            [=](int a) { return to + (i + a) * P; });
}

// packed[visited][...] += sum over queries of weights[visit][query] * from[query][...]
inline void add_to_keys(int count, int P, const AttentionScratch& scratch, const float* weights,
                        const float* from, float* packed) {
    for (int t = 0; t < scratch.visits; t += 4) {
        const std::uint16_t* m = scratch.seen_by.data() + t;
        const int* visited = scratch.visited.data() + t;
        unsigned all = m[0] & m[1] & m[2] & m[3], any = m[0] | m[1] | m[2] | m[3];
        auto which = [=](int i) {
            if (all >> i & 1) return 15u;
            if (!(any >> i & 1)) return 0u;
            return (m[0] >> i & 1u) | (m[1] >> i & 1u) << 1 | (m[2] >> i & 1u) << 2 | (m[3] >> i & 1u) << 3;
        };
        add_products<4>(
            count, P, which, [=](int i, int a) { return weights[(t + a) * lanes + i]; },
            [=](int i) { return from + i * P; },
            [=](int a) { return packed + std::ptrdiff_t(visited[a]) * P; });
    }
}

}  // namespace masquerade::cpu::blocks

// SPDX-License-Identifier: MIT
// The matrix products that attention_block.h declares: one factor is a block of query rows, the other factor is the
// packed keys or values that the queries see. The products are computed in tiles whose sums stay in registers.
#include "engine/ops/cpu/attention_block.h"

#include "engine/ops/cpu/draws.h"
#include "engine/ops/cpu/workspace.h"

namespace masquerade::cpu::blocks {
namespace {

// Computes products[t][lane], the dot product of packed row t and column `lane` of the matrix `columns`, for `Keys`
// consecutive packed rows. Keys is at least 8: each multiply-add of a sum must wait for the previous one, so at least 8
// sums must run side by side to keep the CPU busy. A packed row has W vectors or, if W is 0, `length` numbers.
template <int Keys, int W>
inline void dot_tile(int D, std::ptrdiff_t length, const float* columns, const float* packed, float* products) {
    const std::ptrdiff_t P = W ? W * lanes : length;
    Vector sum[Keys] = {};
    for (int d = 0; d < D; d++) {
        Vector x = load(columns + d * lanes);
#pragma GCC unroll 16
        for (int t = 0; t < Keys; t++) sum[t] = multiply_add(splat(packed[t * P + d]), x, sum[t]);
    }
#pragma GCC unroll 16
    for (int t = 0; t < Keys; t++) store(products + t * lanes, sum[t]);
}
template <int W>
void dot_span(int D, std::ptrdiff_t P, const float* columns, const float* packed, int count, float* products) {
    int t = 0;
    if constexpr (registers == 32 && W > 0) {
        for (; t + 12 < count; t += 16) dot_tile<16, W>(D, P, columns, packed + t * P, products + t * lanes);
        if (t + 8 < count) {
            dot_tile<12, W>(D, P, columns, packed + t * P, products + t * lanes);
            return;
        }
    }
    for (; t < count; t += 8) dot_tile<8, W>(D, P, columns, packed + t * P, products + t * lanes);
}

constexpr unsigned all_rows = ~0u;
// Computes sum[a][...] += weights[a * stride] * x[...] for every row a of the tile whose bit a in `bits` is set. If
// `bits` is a constant, the compiled code has no branches.
template <int Rows, int Vectors>
inline void add_tile(Vector (&sum)[Rows][Vectors], unsigned bits, const float* weights, int stride, const float* x) {
#pragma GCC unroll 8
    for (int a = 0; a < Rows; a++)
        if (bits >> a & 1)
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; v++)
                sum[a][v] = multiply_add(splat(weights[a * stride]), load(x + v * lanes), sum[a][v]);
}
template <int Rows, int Vectors>
inline void store_tile(const Vector (&sum)[Rows][Vectors], int P, float* to) {
#pragma GCC unroll 8
    for (int a = 0; a < Rows; a++)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; v++) store(to + a * P + v * lanes, sum[a][v]);
}

// Computes one tile of the result of sum_over_keys(): the query rows [i, i + Rows), and as many columns as fit in
// `Vectors` SIMD vectors. `packed` and `to` point to the first of these columns in row 0.
template <int Rows, int Vectors>
void sum_tile_over_keys(const KeyRun* run, const KeyRun* end, int i, int P, const float* weights, const float* packed,
                        float* to) {
    constexpr unsigned all = (1u << Rows) - 1;
    Vector sum[Rows][Vectors] = {};
    weights += i;
    for (; run != end; run++) {
        const unsigned bits = run->seen_by >> i & all;
        const float *x = packed + std::ptrdiff_t(run->key) * P, *next = weights + run->count * lanes;
        if (bits == all)
            for (; weights != next; weights += lanes, x += P) add_tile(sum, all_rows, weights, 1, x);
        else if (bits != 0)
            for (; weights != next; weights += lanes, x += P) add_tile(sum, bits, weights, 1, x);
        weights = next;
    }
    store_tile(sum, P, to + i * P);
}

// Computes one tile of the result of add_to_keys(): the packed rows of `Keys` consecutive keys that the query block
// visits, and as many columns as fit in `Vectors` SIMD vectors. `from` points to the first of these columns in the
// block's first query row, and `to` points to it in the first of these keys.
template <int Keys, int Vectors>
void add_tile_to_keys(const std::uint16_t* seen_by, unsigned everyone, int count, int P, const float* weights,
                      const float* from, float* to) {
    Vector sum[Keys][Vectors];
#pragma GCC unroll 8
    for (int a = 0; a < Keys; a++)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; v++) sum[a][v] = load(to + a * P + v * lanes);
    unsigned all = everyone, any = 0;
    for (int a = 0; a < Keys; a++) all &= seen_by[a], any |= seen_by[a];
    if (all == everyone) {
        for (int i = 0; i < count; i++) add_tile(sum, all_rows, weights + i, lanes, from + i * P);
    } else {
        for (int i = 0; i < count; i++) {
            if (all >> i & 1)
                add_tile(sum, all_rows, weights + i, lanes, from + i * P);
            else if (any >> i & 1) {
                unsigned bits = 0;
#pragma GCC unroll 8
                for (int a = 0; a < Keys; a++) bits |= (seen_by[a] >> i & 1u) << a;
                add_tile(sum, bits, weights + i, lanes, from + i * P);
            }
        }
    }
    store_tile(sum, P, to);
}

// each_tile() calls f(Rows, Vectors, row, column) for tiles that cover a matrix of `count` rows and P columns. A tile
// has `Rows` rows of `Vectors` vectors; both numbers are compile-time constants. A tile has up to 16 vectors of sums on
// a CPU with 32 vector registers, and up to 8 on a CPU with 16. each_tile_of_rows() covers one strip of columns.
template <int Vectors, int Rows, class F>
inline void each_tile_of_rows(int row, int count, int column, F f) {
    for (; row + Rows <= count; row += Rows)
        f(std::integral_constant<int, Rows>{}, std::integral_constant<int, Vectors>{}, row, column);
    if constexpr (Rows > 1) each_tile_of_rows<Vectors, Rows / 2>(row, count, column, f);
}
template <class F>
inline void each_tile(int count, int P, F f) {
    constexpr int most = registers == 32 ? 4 : 2, rows = registers == 32 ? 16 / most : 4;
    int column = 0;
    for (; column + most * lanes <= P; column += most * lanes) each_tile_of_rows<most, rows>(0, count, column, f);
    if constexpr (most > 2)
        for (; column + 2 * lanes <= P; column += 2 * lanes) each_tile_of_rows<2, 8>(0, count, column, f);
    for (; column < P; column += lanes) each_tile_of_rows<1, 8>(0, count, column, f);
}

// Calls f(first packed row, number of rows, number of keys visited before these rows) for each range of consecutive
// packed rows that the query block visits. The block visits the keys that at least one of its query rows sees; each key
// is one packed row.
template <class F>
inline void each_span(const DocumentPlan& plan, const QueryBlock& block, F f) {
    int visit = 0;
    for (int r = block.first_run; r < block.last_run;) {
        const int key = plan.runs[r].key;
        int count = 0;
        for (; r < block.last_run && plan.runs[r].key == key + count; r++) count += plan.runs[r].count;
        f(key, count, visit);
        visit += count;
    }
}

}  // namespace

void dot_keys(const DocumentPlan& plan, const QueryBlock& block, int D, const float* columns, const float* packed,
              float* products) {
    const int P = padded(D);
    auto dot = P == lanes ? dot_span<1> : P == 2 * lanes ? dot_span<2> : P == 4 * lanes ? dot_span<4> : dot_span<0>;
    each_span(plan, block, [&](int key, int count, int visit) {
        dot(D, P, columns, packed + std::ptrdiff_t(key) * P, count, products + visit * lanes);
    });
}

void sum_over_keys(const DocumentPlan& plan, const QueryBlock& block, int P, const float* weights, const float* packed,
                   float* to) {
    const KeyRun *run = plan.runs.data() + block.first_run, *end = plan.runs.data() + block.last_run;
    each_tile(block.count, P, [=](auto Rows, auto Vectors, int row, int column) {
        sum_tile_over_keys<Rows, Vectors>(run, end, row, P, weights, packed + column, to + column);
    });
}

void add_to_keys(const DocumentPlan& plan, const QueryBlock& block, int P, const float* weights, const float* from,
                 float* packed) {
    struct Memory;
    std::uint16_t* seen_by = workspace<Memory, std::uint16_t>(block.visits);
    for (int r = block.first_run, t = 0; r < block.last_run; t += plan.runs[r].count, r++)
        std::fill_n(seen_by + t, plan.runs[r].count, std::uint16_t(plan.runs[r].seen_by));
    each_span(plan, block, [&](int key, int count, int visit) {
        each_tile(count, P, [=](auto Keys, auto Vectors, int row, int column) {
            add_tile_to_keys<Keys, Vectors>(seen_by + visit + row, block.everyone, block.count, P,
                                            weights + (visit + row) * lanes, from + column,
                                            packed + std::ptrdiff_t(key + row) * P + column);
        });
    });
}

void draw_dropout(const AttentionCall& call, const DocumentPlan& plan, const QueryBlock& block, int head,
                  float* factors) {
    const Vector kept = splat(float(call.dropout.kept));
    const Words limit = (call.dropout.threshold << 16) - Words{};
    const Stream& stream = call.rule.stream;
    Words document{}, position{};
    for (int i = 0; i < block.count; i++) {
        document[i] = std::uint32_t(call.rule.rows.document[block.row + i]);
        position[i] = std::uint32_t(call.rule.rows.position[block.row + i]);
    }
    Vector drawn[AttentionDropout::keys_a_draw];
    std::uint32_t known = ~0u;  // number (block_of()) of the random draw from which `drawn` was computed
    for (int r = block.first_run; r < block.last_run; r++) {
        const int end = plan.runs[r].channel + plan.runs[r].count;
        for (int channel = plan.runs[r].channel; channel < end; channel++, factors += lanes) {
            if (const std::uint32_t number = AttentionDropout::block_of(head, channel); number != known) {
                Words draws[4] = {number - Words{}, position, document, stream.step - Words{}};
                philox(draws, stream.key0, stream.key1);
#pragma GCC unroll 4
                for (int k = 0; k < 4; k++) {
                    drawn[2 * k] = draws[k] << 16 >= limit ? kept : Vector{};
                    drawn[2 * k + 1] = draws[k] >= limit ? kept : Vector{};
                }
                known = number;
            }
            store(factors, drawn[channel % AttentionDropout::keys_a_draw]);
        }
    }
}

}  // namespace masquerade::cpu::blocks

// SPDX-License-Identifier: MIT
// The forward of softmax attention on CUDA. A block computes a tile of queries and loops over the key tiles in which
// these queries see a key. For each query row, the block keeps the largest score, the sum of exponentials and the
// weighted sum of values so far. When a larger score appears, both sums are first multiplied by exp(old largest - new
// largest) (Milakov & Gimelshein 2018; Dao et al. 2022, algorithm 1). Exponentials are computed as powers of 2.
#include "engine/ops/cuda/attention.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class Sizes>
struct ForwardTiles {
    using S = typename Sizes::S;
    Rows<S, Sizes::queries, Sizes::W> q;
    struct {
        Rows<S, Sizes::keys, Sizes::W> k, v;
    } stage[Sizes::stages];
};

// The sums of one warp: 16 query rows and W columns of y. `top`, `level` and `total` belong to the lane's two rows.
// `top` is the largest product q.k so far, and `level` is scale2 top (0 if the row has seen no key yet), so exp(scale
// (s - top)) is 2^(scale2 s - level). `total` is the sum of exponentials, over only those keys whose scores are in this
// lane.
template <class Sizes>
struct ForwardSums {
    using S = typename Sizes::S;
    static constexpr int W = Sizes::W, K = Sizes::keys;
    float y[W / 8][4], top[2] = {-INFINITY, -INFINITY}, level[2] = {0, 0}, total[2] = {0, 0};

    // Adds the terms of the keys of one key tile to the sums. `scores` contains the dot products q.k, without the
    // factor 1 / sqrt(D), and is overwritten.
    __device__ void add(const AttentionInput<S>& input, const TwoRows<S>& rows, const Visit& visit, int head,
                        const Seen& seen, float (&scores)[K / 8][4], const Rows<S, K, W>& v, int columns) {
        if (seen.by_pairs)
            seen.each_pair<K>([&](int b, int h, int r, int e) {
                float& x = scores[4 * b + h][2 * r + e];
                x = seen.at(r, b, h, e) ? x : -INFINITY;
            });
        float higher[2] = {top[0], top[1]};
        seen.each_pair<K>(
            [&](int b, int h, int r, int e) { higher[r] = std::fmax(higher[r], scores[4 * b + h][2 * r + e]); });
        if (__ballot_sync(0xffffffffu, higher[0] > top[0] || higher[1] > top[1])) raise(input, higher);
        if (input.dropout.threshold > 0)
            add_groups<true>(input, rows, visit.channel, head, seen, scores, v, columns);
        else
            add_groups<false>(input, rows, visit.channel, head, seen, scores, v, columns);
    }
    // Adds the terms of the groups of keys that are seen, after the sums were brought to the level of the tile. `drops`
    // says whether there is dropout.
    template <bool drops>
    __device__ void add_groups(const AttentionInput<S>& input, const TwoRows<S>& rows, int channel, int head,
                               const Seen& seen, float (&scores)[K / 8][4], const Rows<S, K, W>& v, int columns) {
        const std::uint32_t block = rows.first_block(head, channel);
        const Areas<S, Rows<S, K, W>::stride, false, true> values(v.all);
        each_constant<K / 32, 1>([&](auto b) {
            if (!(seen.groups >> b & 1)) return;
            [[maybe_unused]] Four draws[2];
            if constexpr (drops) rows.draw(input, channel, block, b, draws);
#pragma unroll
            for (int h = 0; h < 4; h++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    float& x = scores[4 * b + h][s];
                    const float p = power_of_2(mul_add(x, input.scale2, -level[s / 2]));
                    total[s / 2] += p;
                    if constexpr (drops)
                        x = input.dropout.keeps(draws[s / 2], 2 * h + s % 2) ? p : 0;
                    else
                        x = p;
                }
            each_constant<2, 1>([&](auto half) {
                constexpr int n = 4 * b + 2 * half;
                multiply_columns<Sizes, 8 * n>(y, as_factor<S>(scores[n], scores[n + 1]), values, columns);
            });
        });
    }
    // Raises the largest products of the rows to the largest of higher[r] in the lanes of a row, and brings the sums to
    // the new level.
    __device__ void raise(const AttentionInput<S>& input, float (&higher)[2]) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            higher[r] = top_of_quad(higher[r]);
            const float raised = higher[r] == -INFINITY ? 0 : higher[r] * input.scale2;
            const float factor = top[r] == -INFINITY ? 0 : power_of_2(level[r] - raised);
            top[r] = higher[r], level[r] = raised;
            total[r] *= factor;
#pragma unroll
            for (int n = 0; n < W / 8; n++) y[n][2 * r] *= factor, y[n][2 * r + 1] *= factor;
        }
    }
};

template <class Sizes, class S = typename Sizes::S>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    attention_forward_kernel(AttentionInput<S> input, S* to_y, float* to_lse) {
    constexpr int W = Sizes::W, K = Sizes::keys;
    ForwardTiles<Sizes>& tiles = *dynamic_shared<ForwardTiles<Sizes>>();
    const AttentionTile tile = input.tables.query_tiles[blockIdx.x];
    const int head = int(blockIdx.y), D = Sizes::exact ? W : input.heads.D, chunks = (D + W - 1) / W;
    const int column = Sizes::exact ? 0 : int(blockIdx.z) * W, columns = D - column < W ? D - column : W;
    const int C = input.heads.of_queries * D, stride = input.heads.kv_columns();
    const int warp_row = int(threadIdx.x) / 32 * 16;
    const bool ahead = Sizes::stages == 2 && chunks == 1, works = warp_row < tile.rows();
    const TwoRows<S> rows(input, tile.row, tile.rows());

    const RowCopies<Sizes, false, Sizes::queries> query_copies(C, input.aligned);
    const RowCopies<Sizes, true, K> key_copies(stride, input.aligned);
    const auto load_queries = [&](int c) {
        query_copies.begin(tiles.q, input.q + std::int64_t(tile.row) * C + head * D + c * W, tile.rows(),
                           D - c * W < W ? D - c * W : W);
    };
    // Begins to load chunk c of the keys of visit v, that is, of one key tile in which the queries see a key. With
    // chunk 0, also begins to load the values, but only the chunk of columns that this block computes.
    const int of_keys = head / input.heads.readers() * D;
    const auto load_keys = [&](const Visit& visit, int v, int c) {
        const S* kv = one_of(input.kv, visit.source()) + std::int64_t(visit.row) * stride + of_keys;
        auto& stage = tiles.stage[v % Sizes::stages];
        key_copies.begin(stage.k, kv + c * W, visit.rows(), D - c * W < W ? D - c * W : W);
        if (c == 0) key_copies.begin(stage.v, kv + input.heads.values() + column, visit.rows(), columns);
    };

    const auto of_warp = rows_of_warp(tiles.q);
    ForwardSums<Sizes> sums;
    clear(sums.y);
    Visit next{};
    if (tile.first < tile.last) {
        next = input.tables.visits[tile.first];
        if (chunks == 1) load_queries(0);
        if (ahead) load_keys(next, tile.first, 0);
    }
    for (int v = tile.first; v < tile.last; v++) {
        const Visit visit = next;
        if (v + 1 < tile.last) next = input.tables.visits[v + 1];
        Seen seen;
        if (works) seen = rows.template find_seen<K>(input, visit.mask, visit.rows());
        float scores[K / 8][4];
        if (!Sizes::exact) clear(scores);
        const auto load = [&](int c) {
            if (chunks > 1) load_queries(c);
            load_keys(visit, v, c);
        };
        const auto load_next = [&] {
            if (v + 1 < tile.last) load_keys(next, v + 1, 0);
        };
        each_chunk(chunks, ahead, load, load_next, [&](int c) {
            if (works) multiply_rows<Sizes>(scores, of_warp, tiles.stage[v % Sizes::stages].k, seen.groups, D - c * W);
        });
        if (seen.groups != 0)
            sums.add(input, rows, visit, head, seen, scores, tiles.stage[v % Sizes::stages].v, columns);
    }
    // A row that sees a key has a total of at least 1, or NaN. A total of 0 therefore means that the row sees no key.
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float total = sum_of_quad(sums.total[r]), factor = total == 0 ? 0 : float(input.dropout.kept) / total;
        if (!rows.there[r]) continue;
        const std::int64_t row = tile.row + rows.first + 8 * r;
        const int from = int(threadIdx.x) % 4 * 2;
        S* const first = to_y + row * C + head * D + column + from;
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            put_two<Sizes>(first + 8 * n, 8 * n + from, sums.y[n][2 * r] * factor, sums.y[n][2 * r + 1] * factor,
                           columns, input.aligned, false);
        if (threadIdx.x % 4 == 0 && blockIdx.z == 0)  // only the block of the first chunk of columns writes lse
            to_lse[row * input.heads.of_queries + head] =
                total == 0 ? -INFINITY : mul_add(sums.level[r], log_of_2, log_of(total));
    }
}

}  // namespace

void attention_forward(View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse) {
    const char* op = "attention_forward";
    check_attention_tensors(op, q, kv, rule, lse);
    const int D = int(q.columns()) / rule.heads;
    for_type(q.dtype, [&]<class S, class A>(S, A) {
        for_tile_sizes<S>(D, graph, [&](auto sizes) {
            using Sizes = decltype(sizes);
            auto input = attention_input<Sizes>(op, q, kv, graph, rule);
            input.aligned = input.aligned && is_aligned(y.data, 16);
            launch_tiles<attention_forward_kernel<Sizes>, Sizes, ForwardTiles<Sizes>>(input.tables.query_tile_count,
                                                                                      rule.heads, D, input, y.as<S>(),
                                                                                      lse.as<float>());
        });
    });
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// The forward of softmax attention on CUDA. A block computes a tile of queries and loops over the key tiles in which
// these queries see a key. For each query row, the block keeps the largest score, the sum of exponentials and the
// weighted sum of values so far. When a larger score appears, both sums are first multiplied by exp(old largest - new
// largest) (Milakov & Gimelshein 2018; Dao et al. 2022, algorithm 1).
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

// The sums of one warp: 16 query rows and W columns of y. `top` and `total` belong to the lane's two rows. `top` is the
// largest score so far. `total` is the sum of exponentials, over only those keys whose scores are in this lane.
template <class Sizes>
struct ForwardSums {
    using S = typename Sizes::S;
    static constexpr int W = Sizes::W, K = Sizes::keys;
    float y[W / 8][4], top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};

    // Adds the terms of the keys of one key tile to the sums. `scores` contains the dot products q.k, without the
    // factor 1 / sqrt(D), and is overwritten.
    __device__ void add(const AttentionInput<S>& input, const TwoRows<S>& rows, const Visit& visit, int head,
                        const std::uint64_t (&seen)[2], unsigned groups, float (&scores)[K / 8][4],
                        const Rows<S, K, W>& v, int columns) {
        float higher[2] = {top[0], top[1]};
#pragma unroll
        for (int n = 0; n < K / 8; n++)
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const bool sees = seen[s / 2] >> (n / 4 * 32 + n % 4 * 2 + s % 2) & 1;
                scores[n][s] = sees ? scores[n][s] * input.scale : -INFINITY;
                higher[s / 2] = std::fmax(higher[s / 2], scores[n][s]);
            }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            higher[r] = top_of_quad(higher[r]);
            const float before = top[r];
            top[r] = higher[r];
            if (higher[r] == -INFINITY) higher[r] = 0;  // the row has seen no key yet
            const float factor = power_of_2((before - higher[r]) * log2_of_e);
            total[r] *= factor;
#pragma unroll
            for (int n = 0; n < W / 8; n++) y[n][2 * r] *= factor, y[n][2 * r + 1] *= factor;
        }
#pragma unroll
        for (int b = 0; b < K / 32; b++) {
            if (!(groups >> b & 1)) continue;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const Four draw = input.dropout.threshold > 0 ? rows.draw(input, r, head, visit.channel, b) : Four{};
#pragma unroll
                for (int h = 0; h < 4; h++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float& x = scores[4 * b + h][2 * r + e];
                        const float p = power_of_2((x - higher[r]) * log2_of_e);
                        total[r] += p;
                        x = input.dropout.keeps(draw, 2 * h + e) ? p : 0;
                    }
            }
#pragma unroll
            for (int n = 4 * b; n < 4 * b + 4; n += 2)
                multiply_columns(y, as_factor<S>(scores[n], scores[n + 1]), v, 8 * n, columns);
        }
    }
};

template <class Sizes, class S = typename Sizes::S>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    attention_forward_kernel(AttentionInput<S> input, S* to_y, float* to_lse) {
    constexpr int W = Sizes::W, K = Sizes::keys, threads = Sizes::threads;
    ForwardTiles<Sizes>& tiles = *dynamic_shared<ForwardTiles<Sizes>>();
    const AttentionTile tile = input.tables.query_tiles[blockIdx.x];
    const int head = int(blockIdx.y), D = input.heads.D, chunks = (D + W - 1) / W, C = input.heads.C();
    const int column = int(blockIdx.z) * W, columns = D - column < W ? D - column : W,
              stride = input.heads.kv_columns();
    const int warp_row = int(threadIdx.x) / 32 * 16;
    const bool ahead = Sizes::stages == 2 && chunks == 1, works = warp_row < tile.rows();
    const TwoRows<S> rows(input, tile.row, tile.rows());

    const auto load_queries = [&](int c) {
        load_rows<threads, false>(tiles.q, input.q + std::int64_t(tile.row) * C + head * D + c * W, C, tile.rows(),
                                  D - c * W < W ? D - c * W : W, input.aligned);
    };
    // Begins to load chunk c of the keys of visit v, that is, of one key tile in which the queries see a key. With
    // chunk 0, also begins to load the values, but only the chunk of columns that this block computes.
    const auto load_keys = [&](const Visit& visit, int v, int c) {
        const S* kv =
            one_of(input.kv, visit.source()) + std::int64_t(visit.row) * stride + head / input.heads.readers() * D;
        auto& stage = tiles.stage[v % Sizes::stages];
        load_rows<threads, true>(stage.k, kv + c * W, stride, visit.rows(), D - c * W < W ? D - c * W : W,
                                 input.aligned);
        if (c == 0)
            load_rows<threads, true>(stage.v, kv + input.heads.values() + column, stride, visit.rows(), columns,
                                     input.aligned);
    };

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
        std::uint64_t seen[2] = {};
        const unsigned groups = works ? rows.find_seen(input, visit.mask, visit.rows(), seen) : 0;
        float scores[K / 8][4];
        clear(scores);
        const auto load = [&](int c) {
            if (chunks > 1) load_queries(c);
            load_keys(visit, v, c);
        };
        const auto load_next = [&] {
            if (v + 1 < tile.last) load_keys(next, v + 1, 0);
        };
        each_chunk(chunks, ahead, load, load_next, [&](int c) {
            if (works)
                multiply_rows<W>(scores, tiles.q.at(warp_row, 0), tiles.q.stride, tiles.stage[v % Sizes::stages].k,
                                 groups, D - c * W);
        });
        if (groups != 0)
            sums.add(input, rows, visit, head, seen, groups, scores, tiles.stage[v % Sizes::stages].v, columns);
    }
    // A row that sees a key has a total of at least 1, or NaN. A total of 0 therefore means that the row sees no key.
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float total = sum_of_quad(sums.total[r]), factor = total == 0 ? 0 : float(input.dropout.kept) / total;
        if (!rows.there[r]) continue;
        const std::int64_t row = tile.row + rows.first + 8 * r;
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            put_two(to_y + row * C + head * D + column, 8 * n + int(threadIdx.x) % 4 * 2, sums.y[n][2 * r] * factor,
                    sums.y[n][2 * r + 1] * factor, columns, input.aligned, false);
        if (threadIdx.x % 4 == 0 && blockIdx.z == 0)  // only the block of the first chunk of columns writes lse
            to_lse[row * input.heads.of_queries + head] = total == 0 ? -INFINITY : sums.top[r] + log_of(total);
    }
}

}  // namespace

void attention_forward(View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse) {
    const char* op = "attention_forward";
    check_attention(op, q, kv, graph, rule, lse);
    const int D = int(q.columns()) / rule.heads;
    for_type(q.dtype, [&]<class S, class A>(Types<S, A>) {
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

// SPDX-License-Identifier: MIT
// The forward of softmax attention on CUDA. A block computes a tile of queries and loops over the key tiles that
// contain keys visible to them. For each query row, it keeps the largest score, the sum of exponentials and the
// weighted sum of values so far. When a larger score appears, both sums are first multiplied by exp(old largest - new
// largest) (Milakov & Gimelshein 2018; Dao et al. 2022, algorithm 1).
#include "engine/ops/cuda/attention.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, int W>
struct ForwardTiles {
    Tile<S, query_tile, W> q;
    Tile<S, key_tile(W), W> k, v;
    FactorTile<S, query_tile, key_tile(W)> weights;
    Tile<float, query_tile, key_tile(W)> scores;
    float top[query_tile], total[query_tile], factor[query_tile];
};

template <class S, int W>
__global__ void __launch_bounds__(tile_threads)
    attention_forward_kernel(AttentionInput<S> input, S* to_y, float* to_lse) {
    constexpr int K = key_tile(W);
    ForwardTiles<S, W>& tiles = *dynamic_shared<ForwardTiles<S, W> >();
    const QueryTile tile = input.tables.query_tiles[blockIdx.x];
    const int head = int(blockIdx.y), D = input.heads.D, chunks = (D + W - 1) / W, C = input.heads.C();
    const int kv_columns = input.heads.kv_columns(), value_offset = input.heads.values();
    const int column = int(blockIdx.z) * W, columns = D - column < W ? D - column : W;
    const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const S* q = input.q + std::int64_t(tile.row) * C + head * D;
    QuerySegment segment{};
    if (tile.segment >= 0) segment = input.tables.graph.queries[tile.segment];
    if (thread < query_tile) tiles.top[thread] = -INFINITY, tiles.total[thread] = 0;
    TileSum<S, query_tile, W> y;
    y.clear();
    for (int v = tile.first; v < tile.last; v++) {
        const Visit visit = input.tables.visits[v];
        const KeyTile keys = input.tables.key_tiles[visit.key_tile];
        const S* kv =
            input.source(keys.source) + std::int64_t(keys.row) * kv_columns + head / input.heads.readers() * D;
        TileSum<S, query_tile, K> scores;
        scores.clear();
        for (int c = 0; c < chunks; c++) {
            const int from = c * W, width = D - from < W ? D - from : W;
            __syncthreads();  // waits until no thread reads the old tiles any more
            // if the head is a single chunk, q stays in shared memory after the first visit
            if (chunks > 1 || v == tile.first) load_tile(tiles.q, q + from, C, tile.rows, width);
            load_tile(tiles.k, kv + from, kv_columns, keys.rows, width);
            if (c == 0) load_tile(tiles.v, kv + value_offset + column, kv_columns, keys.rows, columns);
            __syncthreads();
            scores.template add<Form::rows_by_rows>(tiles.q, tiles.k, tile.rows, keys.rows, width);
        }
        scores.each([&](int i, int j, float s) {
            if (i < tile.rows && j < keys.rows) tiles.scores(i, j) = s;
        });
        const int height = filled(tile.rows, query_tile), width = filled(keys.rows, K);
        __syncthreads();
        for (int i = warp; i < query_tile; i += tile_threads / 32) {
            if (i >= tile.rows) {
                // the product with v also reads rows beyond tile.rows, so their weights must be 0
                for (int j = lane; j < width && i < height; j += 32) tiles.weights.set(i, j, 0);
                if (lane == 0) tiles.factor[i] = 0;
                continue;
            }
            const Sight<K> sight(input, segment, tile, keys, v, visit, i, head);
            const float before = tiles.top[i];
            float top = before, total = 0;
            for (int c = 0; c < sight.columns; c++) {
                if (!sight.sees[c]) continue;
                const float s = tiles.scores(i, lane + 32 * c) * input.scale;
                top = s > top ? s : top;
            }
            for (int d = 16; d > 0; d /= 2) {
                const float other = lane_xor(top, d);
                top = other > top ? other : top;
            }
            for (int c = 0; c < sight.columns; c++) {
                const int j = lane + 32 * c;
                const float p = sight.sees[c] ? exp_of(tiles.scores(i, j) * input.scale - top) : 0.0f;
                total += p;
                if (j < width) tiles.weights.set(i, j, p * sight.keep[c]);
            }
            for (int d = 16; d > 0; d /= 2) total += lane_xor(total, d);
            __syncwarp();  // waits until all lanes have read the old tiles.top[i]
            if (lane == 0) {
                const float factor = before == top ? 1.0f : exp_of(before - top);
                tiles.factor[i] = factor;
                tiles.total[i] = mul_add(tiles.total[i], factor, total);
                tiles.top[i] = top;
            }
        }
        __syncthreads();
        y.each([&](int i, int, float& x) { x *= tiles.factor[i]; });
        add_factors<Form::rows_by_columns>(y, tiles.weights, tiles.v, tile.rows, columns, keys.rows);
    }
    __syncthreads();
    // A row that sees a key has a total of at least 1, or NaN. A total of 0 therefore means that the row sees no key.
    y.each([&](int i, int c, float x) {
        if (i >= tile.rows || c >= columns) return;
        const float total = tiles.total[i];
        to_y[std::int64_t(tile.row + i) * C + head * D + column + c] = S(total == 0 ? 0.0f : x / total);
    });
    if (thread < tile.rows && blockIdx.z == 0) {  // only the block of the first chunk of columns writes lse
        const float total = tiles.total[thread];
        to_lse[std::int64_t(tile.row + thread) * input.heads.of_queries + head] =
            total == 0 ? -INFINITY : tiles.top[thread] + log_of(total);
    }
}

}  // namespace

void attention_forward(View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse) {
    const char* op = "attention_forward";
    check_attention(op, q, kv, graph, rule, lse);
    const int D = int(q.columns()) / rule.heads;
    for_type(q.dtype, [&]<class S, class A>(Types<S, A>) {
        for_width(D, [&](auto width) {
            constexpr int W = decltype(width)::value;
            const auto input = attention_input<S>(op, q, kv, graph, rule, W);
            launch_tiles<attention_forward_kernel<S, W> >(input.tables.query_tile_count, rule.heads, D, W,
                                                          sizeof(ForwardTiles<S, W>), input, y.as<S>(),
                                                          lse.as<float>());
        });
    });
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// The backward of attention on CUDA: one kernel for dq, a block with a tile of queries that goes over tiles of keys, and
// one for dk and dv, a block with a tile of keys that goes over the tiles of queries that see it. Both find the
// probabilities again from lse. Each element of a gradient is summed by one thread in one order, and written once.
#include "engine/ops/cuda/attention.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S>
struct BackwardInput {
    AttentionInput<S> forward;
    const S* dy;
    const float *lse, *delta;  // (Nq,H)
};

// delta = sum over j of p_j dp_j = dy . y: with dropout, too, as y holds the keeps. Row n is row n / H of the queries, head
// n % H.
template <class S>
struct Delta {
    const S *dy, *y;
    float* delta;
    int D;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const S *a = dy + n * D, *b = y + n * D;
        const float found = sum(lanes, D, [=](int d) { return float(a[d]) * float(b[d]); });
        if (first(lanes)) delta[n] = found;
    }
};

Scratch memory_of_delta;

template <class S, int W>
struct BackwardTiles {
    Tile<S, query_tile, W> q, dy;
    Tile<S, key_tile(W), W> k, v;
    Tile<float, query_tile, key_tile(W)> scores, dp;
    Tile<S, query_tile, key_tile(W)> p, ds;
    float lse[query_tile], delta[query_tile];
};

// Of one block: where its rows begin in the tensors, and which columns of the head are its own.
template <class S, int W>
struct Backward {
    static constexpr int K = key_tile(W);
    const BackwardInput<S>& input;
    BackwardTiles<S, W>& tiles;
    int head, D, C, chunks, column, columns;

    __device__ Backward(const BackwardInput<S>& all)
        : input(all),
          tiles(*dynamic_shared<BackwardTiles<S, W> >()),
          head(int(blockIdx.y)),
          D(all.forward.D),
          C(all.forward.heads * D),
          chunks((D + W - 1) / W),
          column(int(blockIdx.z) * W),
          columns(D - column < W ? D - column : W) {}

    __device__ void load_queries(const QueryTile& tile, int from, int width) const {
        const std::int64_t at = std::int64_t(tile.row) * C + head * D + from;
        load_tile(tiles.q, input.forward.q + at, C, tile.rows, width);
        load_tile(tiles.dy, input.dy + at, C, tile.rows, width);
    }
    __device__ void load_keys(const KeyTile& keys, int from, int width) const {
        const S* kv = input.forward.source(keys.source) + std::int64_t(keys.row) * 2 * C + head * D + from;
        load_tile(tiles.k, kv, 2 * C, keys.rows, width);
        load_tile(tiles.v, kv + C, 2 * C, keys.rows, width);
    }
    // Of a pair of tiles p times what dropout does to it, and ds = p (dp - delta) / sqrt(D), where dp = dy.v times the same;
    // 0 where a row does not see. What lies in the tiles already is not loaded again.
    __device__ void gradients_of_scores(const QueryTile& tile, const KeyTile& keys, int visit_index,
                                        bool new_queries, bool new_keys) const {
        const AttentionInput<S>& forward = input.forward;
        const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
        const Visit visit = forward.tables.visits[visit_index];
        const QuerySegment segment = forward.tables.graph.queries[tile.segment];
        TileSum<S, query_tile, K> scores, dp;
        scores.clear(), dp.clear();
        for (int c = 0; c < chunks; c++) {
            const int from = c * W, width = D - from < W ? D - from : W;
            __syncthreads();  // what was in the tiles has been used
            if (chunks > 1 || new_queries) load_queries(tile, from, width);
            if (chunks > 1 || new_keys) load_keys(keys, from, width);
            if (c == 0 && new_queries && thread < tile.rows) {
                const std::int64_t n = std::int64_t(tile.row + thread) * forward.heads + head;
                tiles.lse[thread] = input.lse[n];
                tiles.delta[thread] = input.delta[n];
            }
            __syncthreads();
            scores.template add<Form::rows_by_rows>(tiles.q, tiles.k, tile.rows, keys.rows, width);
            dp.template add<Form::rows_by_rows>(tiles.dy, tiles.v, tile.rows, keys.rows, width);
        }
        scores.each([&](int i, int j, float x) { tiles.scores(i, j) = x; });
        dp.each([&](int i, int j, float x) { tiles.dp(i, j) = x; });
        __syncthreads();
        if (chunks > 1) {  // the columns of this block once more
            load_queries(tile, column, columns);
            load_keys(keys, column, columns);
        }
        for (int i = warp; i < query_tile; i += tile_threads / 32) {
            if (i >= tile.rows) {
                for (int j = lane; j < K; j += 32) tiles.p(i, j) = tiles.ds(i, j) = S(0.0f);
                continue;
            }
            const Sight<K> sight(forward, segment, tile, keys, visit_index, visit, i, head);
            for (int c = 0; c < sight.columns; c++) {
                const int j = lane + 32 * c;
                const float p =
                    sight.sees[c] ? exp_of(tiles.scores(i, j) * forward.scale - tiles.lse[i]) : 0.0f;
                const float slope = tiles.dp(i, j) * sight.keep[c] - tiles.delta[i];
                tiles.p(i, j) = S(p * sight.keep[c]);
                tiles.ds(i, j) = S(sight.sees[c] ? p * slope * forward.scale : 0.0f);
            }
        }
        __syncthreads();
    }
};

template <class S, int W>
__global__ void __launch_bounds__(tile_threads) attention_dq_kernel(BackwardInput<S> input, S* to, bool add) {
    const Backward<S, W> block(input);
    const QueryTile tile = input.forward.tables.query_tiles[blockIdx.x];
    TileSum<S, query_tile, W> dq;
    dq.clear();
    for (int v = tile.first; v < tile.last; v++) {
        const KeyTile keys = input.forward.tables.key_tiles[input.forward.tables.visits[v].key_tile];
        block.gradients_of_scores(tile, keys, v, v == tile.first, true);
        dq.template add<Form::rows_by_columns>(block.tiles.ds, block.tiles.k, tile.rows, block.columns,
                                               keys.rows);
    }
    S* rows = to + std::int64_t(tile.row) * block.C + block.head * block.D + block.column;
    dq.each([&](int i, int c, float x) {
        if (i < tile.rows && c < block.columns) put(rows[std::int64_t(i) * block.C + c], x, add);
    });
}

template <class S>
struct KeyGradients {
    S* to[4];  // (Nk,2C), or null
    bool add[4];
};

template <class S, int W>
__global__ void __launch_bounds__(tile_threads)
    attention_dkv_kernel(BackwardInput<S> input, KeyGradients<S> gradients) {
    const Backward<S, W> block(input);
    const KeyTile keys = input.forward.tables.key_tiles[blockIdx.x];
    S* to = nullptr;
    bool add = false;
#pragma unroll
    for (int s = 0; s < 4; s++)
        if (s == keys.source) to = gradients.to[s], add = gradients.add[s];
    if (!to) return;  // the whole block
    TileSum<S, key_tile(W), W> dk, dv;
    dk.clear(), dv.clear();
    for (int e = keys.first; e < keys.last; e++) {
        const int v = input.forward.tables.by_key[e];
        const QueryTile tile = input.forward.tables.query_tiles[input.forward.tables.visits[v].query_tile];
        block.gradients_of_scores(tile, keys, v, true, e == keys.first);
        dk.template add<Form::columns>(block.tiles.ds, block.tiles.q, keys.rows, block.columns, tile.rows);
        dv.template add<Form::columns>(block.tiles.p, block.tiles.dy, keys.rows, block.columns, tile.rows);
    }
    S* rows = to + std::int64_t(keys.row) * 2 * block.C + block.head * block.D + block.column;
    auto store = [&](S* first) {
        return [=](int j, int c, float x) {
            if (j < keys.rows && c < block.columns) put(first[std::int64_t(j) * 2 * block.C + c], x, add);
        };
    };
    dk.each(store(rows));
    dv.each(store(rows + block.C));
}

}  // namespace

void attention_backward(View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph,
                        AttentionRule rule, Grad dq, Grads dkv) {
    const char* op = "attention_backward";
    check_attention(op, q, kv, graph, rule, y, lse);
    check_attention_gradients(op, dy, q, kv, y, dq, dkv);
    const int D = int(q.columns()) / rule.heads;
    const std::int64_t rows = q.rows() * rule.heads;
    float* delta = reinterpret_cast<float*>(memory_of_delta.at_least(std::size_t(rows) * sizeof(float)));
    for_type(q.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        for_each_row(rows, Delta<S>{dy.as<S>(), y.as<S>(), delta, D});
        for_width(D, [&](auto width) {
            constexpr int W = decltype(width)::value;
            const BackwardInput<S> input{attention_input<S>(op, q, kv, graph, rule, W), dy.as<S>(),
                                         lse.as<float>(), delta};
            const Tables& tables = input.forward.tables;
            constexpr std::size_t shared = sizeof(BackwardTiles<S, W>);
            if (dq)
                launch_tiles<attention_dq_kernel<S, W> >(tables.query_tile_count, rule.heads, D, W, shared,
                                                         input, dq.view.as<S>(), dq.add);
            KeyGradients<S> gradients{};
            bool wanted = false;
            for (int s = 0; s < dkv.count; s++) {
                gradients.to[s] = dkv[s].view.as<S>();
                gradients.add[s] = dkv[s].add;
                wanted = wanted || dkv[s];
            }
            if (wanted)
                launch_tiles<attention_dkv_kernel<S, W> >(tables.key_tile_count, rule.heads, D, W, shared,
                                                          input, gradients);
        });
    });
}

}  // namespace masquerade::DEVICE

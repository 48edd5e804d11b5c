// SPDX-License-Identifier: MIT
// The backward of softmax attention on CUDA, in three kernels: for delta (see struct Delta), for dq, and for dk and
// dv. In the kernels for delta and dq, a block computes a tile of queries and loops over the key tiles that contain
// keys visible to them. In the kernel for dk and dv, a block computes a tile of keys and loops over the query tiles
// that see some of these keys. All three kernels compute the probabilities again from the scores and lse, the
// log-sum-exp of each row's scores. Each element of a gradient is summed by one thread in a fixed order, and written
// once.
#include "engine/ops/cuda/attention.cuh"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S>
struct BackwardInput {
    AttentionInput<S> forward;
    const S* dy;
    const float *lse, *delta;  // (Nq,H): log sum exp of the scores of each row and head; `delta` is explained below
};

// Tag of the workspace for delta (Nq,H). For each query row and head, delta = sum_j p_j dp_j over the visible keys j,
// where p_j is a probability and dp_j its gradient. The gradient of a score is ds_j = p_j (dp_j - delta) / sqrt(D).
// ds_j is computed from the same p_j and dp_j as delta. In a row that sees only one key, ds_j is therefore exactly 0.
// delta also equals dy.y, which would be cheaper to compute; but y is rounded to S.
struct Delta {};

template <class S, int W>
struct BackwardTiles {
    Tile<S, query_tile, W> q, dy;
    Tile<S, key_tile(W), W> k, v;
    Tile<float, query_tile, key_tile(W)> scores, dp;
    FactorTile<S, query_tile, key_tile(W)> p, ds;
    float lse[query_tile], delta[query_tile];
};

// Number of blocks that an H100 multiprocessor can run at the same time, computed for 227 KiB of shared memory, of
// which each block uses 1 KiB more than it requests. The number is a launch bound. Without it, ptxas aims at more
// blocks: it gives each thread so few registers that some spill.
template <class S, int W>
constexpr int blocks_at_once = int((std::size_t(227) << 10) / (sizeof(BackwardTiles<S, W>) + 1024));

// The work of one block: the columns [column, column + columns) of query head `head`. A block of attention_dkv_kernel
// computes one key/value head. It sets `head` to one query head after another of those that share this key/value head.
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
          D(all.forward.heads.D),
          C(all.forward.heads.C()),
          chunks((D + W - 1) / W),
          column(int(blockIdx.z) * W),
          columns(D - column < W ? D - column : W) {}

    __device__ void load_queries(const QueryTile& tile, int from, int width) const {
        const std::int64_t at = std::int64_t(tile.row) * C + head * D + from;
        load_tile(tiles.q, input.forward.q + at, C, tile.rows, width);
        load_tile(tiles.dy, input.dy + at, C, tile.rows, width);
    }
    __device__ void load_keys(const KeyTile& keys, int from, int width) const {
        const AttentionHeads& heads = input.forward.heads;
        const S* kv = input.forward.source(keys.source) + std::int64_t(keys.row) * heads.kv_columns() +
                      head / heads.readers() * D + from;
        load_tile(tiles.k, kv, heads.kv_columns(), keys.rows, width);
        load_tile(tiles.v, kv + heads.values(), heads.kv_columns(), keys.rows, width);
    }
    // Computes tiles.p = p keep and tiles.ds = p (dp - delta) / sqrt(D) for a query tile and a key tile, where p is
    // the probability, keep is the dropout factor, and dp = keep dy.v. tiles.p and tiles.ds are 0 if the row does not
    // see the key. If `only_delta` is set, the function instead adds the sum of p dp over these keys to tiles.delta.
    // new_queries says whether the query tile must first be loaded into shared memory, and new_keys says the same of
    // the key tile.
    template <bool only_delta>
    __device__ void gradients_of_scores(const QueryTile& tile, const KeyTile& keys, int visit_index, bool new_queries,
                                        bool new_keys) const {
        const AttentionInput<S>& forward = input.forward;
        const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
        const Visit visit = forward.tables.visits[visit_index];
        const QuerySegment segment = forward.tables.graph.queries[tile.segment];
        TileSum<S, query_tile, K> scores, dp;
        scores.clear(), dp.clear();
        for (int c = 0; c < chunks; c++) {
            const int from = c * W, width = D - from < W ? D - from : W;
            __syncthreads();  // waits until no thread reads the old tiles any more
            if (chunks > 1 || new_queries) load_queries(tile, from, width);
            if (chunks > 1 || new_keys) load_keys(keys, from, width);
            if (c == 0 && new_queries && thread < tile.rows) {
                const std::int64_t n = std::int64_t(tile.row + thread) * forward.heads.of_queries + head;
                tiles.lse[thread] = input.lse[n];
                if (!only_delta) tiles.delta[thread] = input.delta[n];
            }
            __syncthreads();
            scores.template add<Form::rows_by_rows>(tiles.q, tiles.k, tile.rows, keys.rows, width);
            dp.template add<Form::rows_by_rows>(tiles.dy, tiles.v, tile.rows, keys.rows, width);
        }
        const auto wanted = [&](int i, int j) { return i < tile.rows && j < keys.rows; };
        scores.each([&](int i, int j, float x) {
            if (wanted(i, j)) tiles.scores(i, j) = x;
        });
        dp.each([&](int i, int j, float x) {
            if (wanted(i, j)) tiles.dp(i, j) = x;
        });
        const int height = filled(tile.rows, query_tile), width = filled(keys.rows, K);
        __syncthreads();
        if (chunks > 1 && !only_delta) {  // the caller multiplies by these columns of q, dy, k and v
            load_queries(tile, column, columns);
            load_keys(keys, column, columns);
        }
        for (int i = warp; i < height; i += tile_threads / 32) {
            if (i >= tile.rows) {
                for (int j = lane; j < width; j += 32) tiles.p.set(i, j, 0), tiles.ds.set(i, j, 0);
                continue;
            }
            const Sight<K> sight(forward, segment, tile, keys, visit_index, visit, i, head);
            [[maybe_unused]] float delta = 0;
            for (int c = 0; c < sight.columns; c++) {
                const int j = lane + 32 * c;
                const float p = sight.sees[c] ? exp_of(tiles.scores(i, j) * forward.scale - tiles.lse[i]) : 0.0f;
                const float slope = sight.sees[c] ? tiles.dp(i, j) * sight.keep[c] : 0.0f;
                if constexpr (only_delta) {
                    delta += p * slope;
                } else if (j < width) {
                    tiles.p.set(i, j, p * sight.keep[c]);
                    tiles.ds.set(i, j, p * (slope - tiles.delta[i]) * forward.scale);
                }
            }
            if constexpr (only_delta) {
                for (int d = 16; d > 0; d /= 2) delta += lane_xor(delta, d);
                if (lane == 0) tiles.delta[i] += delta;
            }
        }
        __syncthreads();
    }
};

template <class S, int W>
__global__ void __launch_bounds__(tile_threads, blocks_at_once<S, W>)
    attention_delta_kernel(BackwardInput<S> input, float* to) {
    const Backward<S, W> block(input);
    const int thread = int(threadIdx.x);
    const QueryTile tile = input.forward.tables.query_tiles[blockIdx.x];
    if (thread < query_tile) block.tiles.delta[thread] = 0;
    for (int v = tile.first; v < tile.last; v++) {
        const KeyTile keys = input.forward.tables.key_tiles[input.forward.tables.visits[v].key_tile];
        block.template gradients_of_scores<true>(tile, keys, v, v == tile.first, true);
    }
    if (thread < tile.rows)  // the last visit ended with a barrier; without visits, a thread reads only the 0 it wrote
        to[std::int64_t(tile.row + thread) * input.forward.heads.of_queries + block.head] = block.tiles.delta[thread];
}

template <class S, int W>
__global__ void __launch_bounds__(tile_threads, blocks_at_once<S, W>)
    attention_dq_kernel(BackwardInput<S> input, S* to, bool add) {
    const Backward<S, W> block(input);
    const QueryTile tile = input.forward.tables.query_tiles[blockIdx.x];
    TileSum<S, query_tile, W> dq;
    dq.clear();
    for (int v = tile.first; v < tile.last; v++) {
        const KeyTile keys = input.forward.tables.key_tiles[input.forward.tables.visits[v].key_tile];
        block.template gradients_of_scores<false>(tile, keys, v, v == tile.first, true);
        add_factors<Form::rows_by_columns>(dq, block.tiles.ds, block.tiles.k, tile.rows, block.columns, keys.rows);
    }
    S* rows = to + std::int64_t(tile.row) * block.C + block.head * block.D + block.column;
    dq.each([&](int i, int c, float x) {
        if (i < tile.rows && c < block.columns) put(rows[std::int64_t(i) * block.C + c], x, add);
    });
}

template <class S>
struct KeyGradients {
    S* to[4];  // to[s] is the gradient of kv[s], in the same shape; a null gradient is not computed
    bool add[4];
};

template <class S, int W>
__global__ void __launch_bounds__(tile_threads)
    attention_dkv_kernel(BackwardInput<S> input, KeyGradients<S> gradients) {
    Backward<S, W> block(input);
    const AttentionHeads& heads = input.forward.heads;
    const int of_keys = int(blockIdx.y), first_head = of_keys * heads.readers();
    const KeyTile keys = input.forward.tables.key_tiles[blockIdx.x];
    S* to = nullptr;
    bool add = false;
#pragma unroll
    for (int s = 0; s < 4; s++)
        if (s == keys.source) to = gradients.to[s], add = gradients.add[s];
    if (!to) return;  // all threads of the block return, so no barrier waits for them
    TileSum<S, key_tile(W), W> dk, dv;
    dk.clear(), dv.clear();
    for (block.head = first_head; block.head < first_head + heads.readers(); block.head++)
        for (int e = keys.first; e < keys.last; e++) {
            const int v = input.forward.tables.by_key[e];
            const QueryTile tile = input.forward.tables.query_tiles[input.forward.tables.visits[v].query_tile];
            block.template gradients_of_scores<false>(tile, keys, v, true, e == keys.first && block.head == first_head);
            add_factors<Form::columns>(dk, block.tiles.ds, block.tiles.q, keys.rows, block.columns, tile.rows);
            add_factors<Form::columns>(dv, block.tiles.p, block.tiles.dy, keys.rows, block.columns, tile.rows);
        }
    S* rows = to + std::int64_t(keys.row) * heads.kv_columns() + of_keys * block.D + block.column;
    const int stride = heads.kv_columns();
    auto store = [&](S* first) {
        return [=](int j, int c, float x) {
            if (j < keys.rows && c < block.columns) put(first[std::int64_t(j) * stride + c], x, add);
        };
    };
    dk.each(store(rows));
    dv.each(store(rows + heads.values()));
}

}  // namespace

void attention_backward(View dy, View q, Views kv, View, View lse, const SegmentGraph& graph, AttentionRule rule,
                        Grad dq, Grads dkv) {
    const char* op = "attention_backward";
    check_attention(op, q, kv, graph, rule, lse);
    check_attention_gradients(op, kv, dkv);
    const int D = int(q.columns()) / rule.heads;
    const std::int64_t rows = q.rows() * rule.heads;
    float* delta = workspace<Delta>(rows);
    for_type(q.dtype, [&]<class S, class A>(Types<S, A>) {
        for_width(D, [&](auto width) {
            constexpr int W = decltype(width)::value;
            const BackwardInput<S> input{attention_input<S>(op, q, kv, graph, rule, W), dy.as<S>(), lse.as<float>(),
                                         delta};
            const Tables& tables = input.forward.tables;
            constexpr std::size_t shared = sizeof(BackwardTiles<S, W>);
            launch_tiles<attention_delta_kernel<S, W> >(tables.query_tile_count, rule.heads, std::min(D, W), W, shared,
                                                        input, delta);
            if (dq)
                launch_tiles<attention_dq_kernel<S, W> >(tables.query_tile_count, rule.heads, D, W, shared, input,
                                                         dq.view.as<S>(), dq.add);
            KeyGradients<S> gradients{};
            bool wanted = false;
            for (int s = 0; s < dkv.count; s++) {
                gradients.to[s] = dkv[s].view.as<S>();
                gradients.add[s] = dkv[s].add;
                wanted = wanted || dkv[s];
            }
            if (wanted)
                launch_tiles<attention_dkv_kernel<S, W> >(tables.key_tile_count, input.forward.heads.of_keys, D, W,
                                                          shared, input, gradients);
        });
    });
}

}  // namespace masquerade::DEVICE

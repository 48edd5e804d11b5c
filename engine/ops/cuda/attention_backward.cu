// SPDX-License-Identifier: MIT
// The backward of softmax attention on CUDA, in two kernels. In the kernel for dq, a block computes a tile of queries
// and loops over the key tiles in which these queries see a key. In the kernel for dk and dv, a block computes a tile
// of keys and loops over the query tiles that see some of these keys. Both kernels compute the probabilities again from
// the scores and lse, the log-sum-exp of each row's scores. Each element of a gradient is summed by one thread in a
// fixed order, and written once.
#include "engine/ops/cuda/attention.cuh"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S>
struct BackwardInput {
    AttentionInput<S> forward;
    const S *dy, *y;
    const float* lse;  // (Nq,H): log-sum-exp of the scores of each row and head
    float* delta;      // (Nq,H): see struct Delta; attention_dq_kernel writes it, attention_dkv_kernel reads it
};

// Tag of the workspace for delta (Nq,H). For each query row and head, with probabilities p_j and their gradients dp_j
// for the visible keys k_j,
//     delta = sum_j p_j dp_j,    ds_j = p_j (dp_j - delta) / sqrt(D), the gradient of q.k_j
//
// If a query tile has only one visit, that is, sees keys of only one key tile, delta is computed from the p_j and dp_j
// of this visit. In a row that sees only one key, ds_j is then exactly 0. Otherwise the kernel for dq needs a delta
// before it knows all p_j and dp_j. It takes c = dy.y, which differs from delta because y is rounded to S, and corrects
// the result. The sum of p is 1, so
//     delta - c = sum_j p_j (dp_j - c),    dq = (sum_j p_j (dp_j - c) k_j - (delta - c) sum_j p_j k_j) / sqrt(D)
// and the kernel computes these three sums in one loop.
struct Delta {};

// The probabilities p and their gradients dp for one pair of a query tile and a key tile: the warp's 16 query rows and
// the keys of the key tile.
template <class Sizes>
struct Pairs {
    using S = typename Sizes::S;
    static constexpr int W = Sizes::W, K = Sizes::keys;
    float p[K / 8][4], dp[K / 8][4];  // contain q.k and dy.v until finish() replaces them
    float lse[2];
    std::uint64_t seen[2];  // bits of the keys that the lane's two query rows see (TwoRows::find_seen())
    unsigned groups = 0;    // bit b: a query row of the warp sees one of the 32 keys of group b

    // Begins a new key tile: sets p and dp to 0, and finds which of its `keys` keys the query rows see.
    __device__ void begin(const AttentionInput<S>& input, const TwoRows<S>& rows, int mask, int keys) {
        clear(p), clear(dp);
        groups = rows.find_seen(input, mask, keys, seen);
    }
    // Adds to p and dp the terms of q.k and dy.v for one chunk of a head's columns (attention.cuh). warp_row is the
    // warp's first query row in the tile.
    template <int M>
    __device__ void add_products(const Rows<S, M, W>& q, const Rows<S, M, W>& dy, const Rows<S, K, W>& k,
                                 const Rows<S, K, W>& v, int warp_row, int columns) {
        multiply_rows<W>(p, q.at(warp_row, 0), q.stride, k, groups, columns);
        multiply_rows<W>(dp, dy.at(warp_row, 0), dy.stride, v, groups, columns);
    }
    // Replaces q.k by the probability p, without dropout, and dy.v by the gradient dp of p. Both are 0 if the row does
    // not see the key. Calls f(n, s, keep) for each element p[n][s], where `keep` says whether dropout keeps this
    // probability. Skips the groups of 32 keys in which no query row of the warp sees a key: there, p and dp stay 0,
    // and f is not called.
    template <class F>
    __device__ void finish(const AttentionInput<S>& input, const TwoRows<S>& rows, int channel, int head, F f) {
        const auto kept = float(input.dropout.kept);
#pragma unroll
        for (int b = 0; b < K / 32; b++) {
            if (!(groups >> b & 1)) continue;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const Four draw = input.dropout.threshold > 0 ? rows.draw(input, r, head, channel, b) : Four{};
#pragma unroll
                for (int h = 0; h < 4; h++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const int n = 4 * b + h, s = 2 * r + e;
                        const bool sees = seen[r] >> (32 * b + 2 * h + e) & 1;
                        const bool keep = input.dropout.keeps(draw, 2 * h + e);
                        const float x = p[n][s] * input.scale - lse[r];
                        p[n][s] = sees ? power_of_2(x * log2_of_e) : 0;
                        dp[n][s] = sees && keep ? dp[n][s] * kept : 0;
                        f(n, s, keep);
                    }
            }
        }
    }
};

// For both kernels: the columns that a block computes, and functions that load tiles of queries and keys.
template <class Sizes>
struct Place {
    using S = typename Sizes::S;
    static constexpr int W = Sizes::W;
    const BackwardInput<S>& input;
    const int D, C, chunks, column, columns;

    __device__ explicit Place(const BackwardInput<S>& all)
        : input(all),
          D(all.forward.heads.D),
          C(all.forward.heads.C()),
          chunks((D + W - 1) / W),
          column(int(blockIdx.z) * W),
          columns(width_at(column)) {}
    __device__ int width_at(int from) const { return D - from < W ? D - from : W; }

    // load_queries() and load_keys() begin to load the columns [from, from + W) of a head.
    template <int M>
    __device__ void load_queries(Rows<S, M, W>& q, Rows<S, M, W>& dy, int row, int rows, int head, int from) const {
        const std::int64_t at = std::int64_t(row) * C + head * D + from;
        load_rows<Sizes::threads, false>(q, input.forward.q + at, C, rows, width_at(from), input.forward.aligned);
        load_rows<Sizes::threads, false>(dy, input.dy + at, C, rows, width_at(from), input.forward.aligned);
    }
    template <int M>
    __device__ void load_keys(Rows<S, M, W>& k, Rows<S, M, W>& v, int source, int row, int rows, int head,
                              int from) const {
        const AttentionHeads& heads = input.forward.heads;
        const int stride = heads.kv_columns();
        const S* kv = one_of(input.forward.kv, source) + std::int64_t(row) * stride + head / heads.readers() * D + from;
        load_rows<Sizes::threads, true>(k, kv, stride, rows, width_at(from), input.forward.aligned);
        load_rows<Sizes::threads, true>(v, kv + heads.values(), stride, rows, width_at(from), input.forward.aligned);
    }
    __device__ std::int64_t statistic(int row, int head) const {
        return std::int64_t(row) * input.forward.heads.of_queries + head;
    }
};

template <class Sizes>
struct QueryTiles {
    using S = typename Sizes::S;
    Rows<S, Sizes::queries, Sizes::W> q, dy;
    struct {
        Rows<S, Sizes::keys, Sizes::W> k, v;
    } stage[Sizes::stages];
};

template <class Sizes, class S = typename Sizes::S>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    attention_dq_kernel(BackwardInput<S> input, S* to, bool add) {
    constexpr int W = Sizes::W, K = Sizes::keys;
    QueryTiles<Sizes>& tiles = *dynamic_shared<QueryTiles<Sizes>>();
    const Place<Sizes> place(input);
    const AttentionTile tile = input.forward.tables.query_tiles[blockIdx.x];
    const int head = int(blockIdx.y), warp_row = int(threadIdx.x) / 32 * 16, t = int(threadIdx.x) % 4;
    const bool ahead = Sizes::stages == 2 && place.chunks == 1, works = warp_row < tile.rows();
    const bool one_visit = tile.last - tile.first == 1;
    const TwoRows<S> rows(input.forward, tile.row, tile.rows());
    Pairs<Sizes> pairs;
    float dq[W / 8][4], of_p[W / 8][4];  // sums of p (dp - delta) k and, if there are several visits, of p k
    // A visit is one key tile in which the queries see a key. If there are several visits, `delta` is c = dy.y, and
    // `rest` becomes delta - c (struct Delta). If there is only one visit, `delta` becomes delta itself, and `rest`
    // stays 0.
    float delta[2] = {0, 0}, rest[2] = {0, 0};
    clear(dq), clear(of_p);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = tile.row + rows.first + 8 * r;
        pairs.lse[r] = rows.there[r] ? input.lse[place.statistic(row, head)] : 0;
        if (one_visit || !rows.there[r]) continue;
        const std::int64_t at = std::int64_t(row) * place.C + head * place.D;
        for (int d = t; d < place.D; d += 4) delta[r] += float(input.dy[at + d]) * float(input.y[at + d]);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) delta[r] = sum_of_quad(delta[r]);

    const auto load_keys = [&](const Visit& visit, int v, int from) {
        auto& stage = tiles.stage[v % Sizes::stages];
        place.load_keys(stage.k, stage.v, visit.source(), visit.row, visit.rows(), head, from);
    };
    const auto load_queries = [&](int from) {
        place.load_queries(tiles.q, tiles.dy, tile.row, tile.rows(), head, from);
    };
    Visit next{};
    if (tile.first < tile.last) {
        next = input.forward.tables.visits[tile.first];
        if (place.chunks == 1) load_queries(0);
        if (ahead) load_keys(next, tile.first, 0);
    }
    for (int v = tile.first; v < tile.last; v++) {
        const Visit visit = next;
        if (v + 1 < tile.last) next = input.forward.tables.visits[v + 1];
        auto& stage = tiles.stage[v % Sizes::stages];
        if (works) pairs.begin(input.forward, rows, visit.mask, visit.rows());
        const auto load = [&](int c) {
            if (place.chunks > 1) load_queries(c * W);
            load_keys(visit, v, c * W);
        };
        const auto load_next = [&] {
            if (v + 1 < tile.last) load_keys(next, v + 1, 0);
        };
        each_chunk(place.chunks, ahead, load, load_next, [&](int c) {
            if (works) pairs.add_products(tiles.q, tiles.dy, stage.k, stage.v, warp_row, place.D - c * W);
        });
        if (place.chunks > 1) {  // loads the keys again: the chunk of columns that this block computes
            __syncthreads();
            load_keys(visit, v, place.column);
            wait_for_copies();
            __syncthreads();
        }
        if (pairs.groups == 0) continue;
        float sum[2] = {0, 0};
        pairs.finish(input.forward, rows, visit.channel, head, [&](int n, int s, bool) {
            sum[s / 2] = mul_add(pairs.p[n][s], pairs.dp[n][s] - delta[s / 2], sum[s / 2]);
        });
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (one_visit)
                delta[r] = sum_of_quad(sum[r]);
            else
                rest[r] += sum[r];
        }
#pragma unroll
        for (int n = 0; n < K / 8; n++)
#pragma unroll
            for (int s = 0; s < 4; s++) pairs.dp[n][s] = pairs.p[n][s] * (pairs.dp[n][s] - delta[s / 2]);
#pragma unroll
        for (int n = 0; n < K / 8; n += 2) {
            if (!(pairs.groups >> n / 4 & 1)) continue;
            multiply_columns(dq, as_factor<S>(pairs.dp[n], pairs.dp[n + 1]), stage.k, 8 * n, place.columns);
            if (!one_visit)
                multiply_columns(of_p, as_factor<S>(pairs.p[n], pairs.p[n + 1]), stage.k, 8 * n, place.columns);
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        rest[r] = sum_of_quad(rest[r]);
        if (!rows.there[r]) continue;
        const int row = tile.row + rows.first + 8 * r;
        if (t == 0 && blockIdx.z == 0) input.delta[place.statistic(row, head)] = delta[r] + rest[r];
        if (!to) continue;
        S* first = to + std::int64_t(row) * place.C + head * place.D + place.column;
        const float scale = input.forward.scale;
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            put_two(first, 8 * n + 2 * t, (dq[n][2 * r] - rest[r] * of_p[n][2 * r]) * scale,
                    (dq[n][2 * r + 1] - rest[r] * of_p[n][2 * r + 1]) * scale, place.columns, input.forward.aligned,
                    add);
    }
}

template <class S>
struct KeyGradients {
    S* to[4];      // to[s] is the gradient of kv[s], in the same shape; a null gradient is not computed
    unsigned add;  // bit s is set if the gradient is added to the old numbers of to[s]
};

template <class Sizes>
struct KeyTiles {
    using S = typename Sizes::S;
    Rows<S, Sizes::keys, Sizes::W> k, v;
    struct {
        Rows<S, Sizes::queries, Sizes::W> q, dy;
    } stage[Sizes::stages];
    // p and ds have a row for each query and a column for each slot of a key (slot_of()). p is 0 for each pair that
    // dropout removes.
    Rows<S, Sizes::queries, Sizes::keys> p, ds;
};

template <class Sizes, class S = typename Sizes::S>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    attention_dkv_kernel(BackwardInput<S> input, KeyGradients<S> gradients) {
    // dk and dv are cut into pieces of 16 rows and 8 columns. The rows are in the order of the slots of keys
    // (slot_of()). A warp computes `down` x `across` pieces of dk and as many of dv.
    constexpr int W = Sizes::W, K = Sizes::keys, warps = Sizes::warps, M = Sizes::queries;
    constexpr int down = K / 16 / warps > 1 ? K / 16 / warps : 1, beside = warps * 16 / K > 1 ? warps * 16 / K : 1;
    constexpr int across = W / 8 / beside;
    KeyTiles<Sizes>& tiles = *dynamic_shared<KeyTiles<Sizes>>();
    const Place<Sizes> place(input);
    const AttentionHeads& heads = input.forward.heads;
    const int of_keys = int(blockIdx.y), first_head = of_keys * heads.readers();
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, t = lane % 4;
    const AttentionTile keys = input.forward.tables.key_tiles[blockIdx.x];
    S* const to = one_of(gradients.to, keys.source());
    const bool add = gradients.add >> keys.source() & 1;
    if (!to) return;  // all threads of the block return, so no barrier waits for them
    const bool ahead = Sizes::stages == 2 && place.chunks == 1;
    // The first row (slot of a key) and the first column of the part of dk and dv that this warp computes.
    const int slot = warp / beside * down * 16, part = warp % beside * across * 8;
    float dk[down][across][4], dv[down][across][4];
#pragma unroll
    for (int m = 0; m < down; m++) clear(dk[m]), clear(dv[m]);

    // A visit is one query tile that sees some of the keys. Step n of the loop computes visit n % visits for query head
    // first_head + n / visits.
    const int visits = keys.last - keys.first, steps = visits * heads.readers();
    const auto visit_at = [&](int n) { return input.forward.tables.visits_by_key[keys.first + n % visits]; };
    const auto load_queries = [&](const Visit& visit, int n, int from) {
        auto& stage = tiles.stage[n % Sizes::stages];
        place.load_queries(stage.q, stage.dy, visit.row, visit.rows(), first_head + n / visits, from);
    };
    const auto load_keys = [&](int from) {
        place.load_keys(tiles.k, tiles.v, keys.source(), keys.row, keys.rows(), first_head, from);
    };
    Visit next{};
    if (steps > 0) {
        next = visit_at(0);
        if (place.chunks == 1) load_keys(0);
        if (ahead) load_queries(next, 0, 0);
    }
    for (int n = 0; n < steps; n++) {
        const Visit visit = next;
        const int head = first_head + n / visits;
        if (n + 1 < steps) next = visit_at(n + 1);
        auto& stage = tiles.stage[n % Sizes::stages];
        const bool works = 16 * warp < visit.rows();
        const TwoRows<S> rows(input.forward, visit.row, visit.rows());
        Pairs<Sizes> pairs;
        if (works) pairs.begin(input.forward, rows, visit.mask, keys.rows());
        const auto load = [&](int c) {
            if (place.chunks > 1) load_keys(c * W);
            load_queries(visit, n, c * W);
        };
        const auto load_next = [&] {
            if (n + 1 < steps) load_queries(next, n + 1, 0);
        };
        each_chunk(place.chunks, ahead, load, load_next, [&](int c) {
            if (works) pairs.add_products(stage.q, stage.dy, tiles.k, tiles.v, 16 * warp, place.D - c * W);
        });
        if (place.chunks > 1) {  // loads the queries again: the chunk of columns that this block computes
            __syncthreads();
            load_queries(visit, n, place.column);
            wait_for_copies();
        }
        if (works) {
            float delta[2];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const std::int64_t at = place.statistic(visit.row + rows.first + 8 * r, head);
                pairs.lse[r] = rows.there[r] ? input.lse[at] : 0;
                delta[r] = rows.there[r] ? input.delta[at] : 0;
            }
            pairs.finish(input.forward, rows, visit.channel, head, [&](int k, int s, bool keep) {
                pairs.dp[k][s] = pairs.p[k][s] * (pairs.dp[k][s] - delta[s / 2]);
                if (!keep) pairs.p[k][s] = 0;
            });
#pragma unroll
            for (int k = 0; k < K / 8; k++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int i = rows.first + 8 * r, j = 8 * k + 2 * t;
                    store_two(tiles.p.at(i, j), pairs.p[k][2 * r], pairs.p[k][2 * r + 1], true, true, true);
                    store_two(tiles.ds.at(i, j), pairs.dp[k][2 * r], pairs.dp[k][2 * r + 1], true, true, true);
                }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < M; i += 16) {
            if (i >= visit.rows()) break;
#pragma unroll
            for (int m = 0; m < down; m++) {
                const Matrices<S> p = matrices_at<true, true>(tiles.p.at(i, slot + 16 * m), tiles.p.stride);
                const Matrices<S> ds = matrices_at<true, true>(tiles.ds.at(i, slot + 16 * m), tiles.ds.stride);
#pragma unroll
                for (int c = 0; c < across; c += 2) {
                    if (part + 8 * c >= place.columns) break;
                    const Matrices<S> q = matrices_at<false, true>(stage.q.at(i, part + 8 * c), stage.q.stride);
                    const Matrices<S> dy = matrices_at<false, true>(stage.dy.at(i, part + 8 * c), stage.dy.stride);
                    multiply_matrices(dk[m][c], ds, q, 0), multiply_matrices(dk[m][c + 1], ds, q, 1);
                    multiply_matrices(dv[m][c], p, dy, 0), multiply_matrices(dv[m][c + 1], p, dy, 1);
                }
            }
        }
    }
    const float kept = float(input.forward.dropout.kept), scale = input.forward.scale;
#pragma unroll
    for (int m = 0; m < down; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int key = slot_of(slot + 16 * m + lane / 4 + 8 * r);
            if (key >= keys.rows()) continue;
            S* row = to + std::int64_t(keys.row + key) * heads.kv_columns() + of_keys * place.D + place.column;
#pragma unroll
            for (int c = 0; c < across; c++) {
                const int from = part + 8 * c + 2 * t;
                const float *of_k = dk[m][c] + 2 * r, *of_v = dv[m][c] + 2 * r;
                put_two(row, from, of_k[0] * scale, of_k[1] * scale, place.columns, input.forward.aligned, add);
                put_two(row + heads.values(), from, of_v[0] * kept, of_v[1] * kept, place.columns,
                        input.forward.aligned, add);
            }
        }
}

}  // namespace

void attention_backward(View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph, AttentionRule rule,
                        Grad dq, Grads dkv) {
    const char* op = "attention_backward";
    check_attention(op, q, kv, graph, rule, lse);
    check_attention_gradients(op, kv, dkv);
    const int D = int(q.columns()) / rule.heads;
    float* delta = workspace<Delta>(q.rows() * rule.heads);
    for_type(q.dtype, [&]<class S, class A>(Types<S, A>) {
        for_tile_sizes<S>(D, graph, [&](auto sizes) {
            using Sizes = decltype(sizes);
            BackwardInput<S> input{attention_input<Sizes>(op, q, kv, graph, rule), dy.as<S>(), y.as<S>(),
                                   lse.as<float>(), delta};
            bool& aligned = input.forward.aligned;
            aligned = aligned && is_aligned(dy.data, 16) && (!dq || is_aligned(dq.view.data, 16));
            KeyGradients<S> gradients{};
            bool wanted = false;
            for (int s = 0; s < dkv.count; s++) {
                gradients.to[s] = dkv[s].view.as<S>();
                gradients.add |= unsigned(dkv[s].add) << s;
                wanted = wanted || dkv[s];
                aligned = aligned && (!dkv[s] || is_aligned(dkv[s].view.data, 16));
            }
            const Tables& tables = input.forward.tables;
            // Even if dq is absent, attention_dq_kernel must compute delta, which attention_dkv_kernel reads. For delta
            // alone, one chunk of columns is enough.
            launch_tiles<attention_dq_kernel<Sizes>, Sizes, QueryTiles<Sizes>>(tables.query_tile_count, rule.heads,
                                                                               dq ? D : std::min(D, Sizes::W), input,
                                                                               dq.view.as<S>(), dq.add);
            if (wanted)
                launch_tiles<attention_dkv_kernel<Sizes>, Sizes, KeyTiles<Sizes>>(tables.key_tile_count,
                                                                                  input.forward.heads.of_keys, D, input,
                                                                                  gradients);
        });
    });
}

}  // namespace masquerade::DEVICE

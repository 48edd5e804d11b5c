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
// of this visit. In a row that sees only one key, p is set to 1, and ds_j is then exactly 0. Otherwise the kernel for
// dq needs a delta before it knows all p_j and dp_j. It takes c = dy.y, which differs from delta because y is rounded
// to S, and corrects the result. The sum of p is 1, so
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
    float level[2];                   // lse log2(e): p is 2^(scale2 q.k - level)
    Seen seen;                        // the keys that the lane's two query rows see

    // Begins a new key tile, of which `keys` rows are used: finds which of its keys the query rows see.
    __device__ void begin(const AttentionInput<S>& input, const TwoRows<S>& rows, int mask, int keys) {
        if (!Sizes::exact) clear(p), clear(dp);
        seen = rows.template find_seen<K>(input, mask, keys);
    }
    // Computes q.k and dy.v or, if the sizes are not exact, adds their terms for one chunk of a head's columns
    // (attention.cuh). q and dy are the rows of the warp (rows_of_warp()).
    template <class Queries>
    __device__ void add_products(const Queries& q, const Queries& dy, const Rows<S, K, W>& k, const Rows<S, K, W>& v,
                                 int columns) {
        multiply_rows<Sizes>(p, q, k, seen.groups, columns);
        multiply_rows<Sizes>(dp, dy, v, seen.groups, columns);
    }
    // Replaces q.k by the probability p, without dropout, and dy.v by dp - delta, where dp is the gradient of p. If the
    // row does not see the key, p becomes 0. Calls f(n, s, keep) for each element p[n][s], where `keep` says whether
    // dropout keeps this probability. Skips the groups of 32 keys in which no query row of the warp sees a key.
    template <class F>
    __device__ void finish(const AttentionInput<S>& input, const TwoRows<S>& rows, int channel, int head,
                           const float (&delta)[2], F f) {
        if (input.dropout.threshold > 0)
            finish_with<true>(input, rows, channel, head, delta, f);
        else
            finish_with<false>(input, rows, channel, head, delta, f);
    }
    template <bool drops, class F>
    __device__ void finish_with(const AttentionInput<S>& input, const TwoRows<S>& rows, int channel, int head,
                                const float (&delta)[2], F f) {
        const auto kept = float(input.dropout.kept);
        const std::uint32_t block = rows.first_block(head, channel);
#pragma unroll
        for (int b = 0; b < K / 32; b++) {
            if (!(seen.groups >> b & 1)) continue;
            [[maybe_unused]] Four draws[2];
            if constexpr (drops) rows.draw(input, channel, block, b, draws);
#pragma unroll
            for (int h = 0; h < 4; h++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    const int n = 4 * b + h;
                    p[n][s] = power_of_2(mul_add(p[n][s], input.scale2, -level[s / 2]));
                }
            if (seen.by_pairs)
#pragma unroll
                for (int h = 0; h < 4; h++)
#pragma unroll
                    for (int s = 0; s < 4; s++) {
                        float& x = p[4 * b + h][s];
                        x = seen.at(s / 2, b, h, s % 2) ? x : 0;
                    }
#pragma unroll
            for (int h = 0; h < 4; h++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    float& x = dp[4 * b + h][s];
                    bool keep = true;
                    if constexpr (drops) {
                        keep = input.dropout.keeps(draws[s / 2], 2 * h + s % 2);
                        x = (keep ? x : 0) * kept;
                    }
                    x -= delta[s / 2];
                    f(4 * b + h, s, keep);
                }
        }
    }
    // Sets p to exactly 1 in rows that see only one key of the tile, and sum[r] to the sum of p dp in these rows.
    __device__ void find_single_keys(float (&sum)[2]) {
        bool single[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int count = __popc(seen.keys[r][0] & 255) + __popc(seen.keys[r][1] & 255);
            single[r] = sum_of_quad(float(count)) == 1;
            if (single[r]) sum[r] = 0;
        }
        if (!__ballot_sync(0xffffffffu, single[0] || single[1])) return;
        seen.each_pair<K>([&](int b, int h, int r, int e) {
            const int n = 4 * b + h, s = 2 * r + e;
            if (single[r] && seen.at(r, b, h, e)) p[n][s] = 1, sum[r] += dp[n][s];
        });
    }
};

// For both kernels: the columns that a block computes, and functions that load tiles of queries and keys.
template <class Sizes>
struct Place {
    using S = typename Sizes::S;
    static constexpr int W = Sizes::W;
    const BackwardInput<S>& input;
    const int D, C, chunks, column, columns;
    const RowCopies<Sizes, false, Sizes::queries> query_copies;
    const RowCopies<Sizes, true, Sizes::keys> key_copies;

    __device__ explicit Place(const BackwardInput<S>& all)
        : input(all),
          D(Sizes::exact ? W : all.forward.heads.D),
          C(all.forward.heads.of_queries * D),
          chunks((D + W - 1) / W),
          column(Sizes::exact ? 0 : int(blockIdx.z) * W),
          columns(width_at(column)),
          query_copies(C, all.forward.aligned),
          key_copies(all.forward.heads.kv_columns(), all.forward.aligned) {}
    __device__ int width_at(int from) const { return D - from < W ? D - from : W; }

    // load_queries() and load_keys() begin to load the columns [from, from + W) of a head of queries or of keys.
    __device__ void load_queries(Rows<S, Sizes::queries, W>& q, Rows<S, Sizes::queries, W>& dy, int row, int rows,
                                 int head, int from) const {
        const std::int64_t at = std::int64_t(row) * C + head * D + from;
        query_copies.begin(q, input.forward.q + at, rows, width_at(from));
        query_copies.begin(dy, input.dy + at, rows, width_at(from));
    }
    __device__ void load_keys(Rows<S, Sizes::keys, W>& k, Rows<S, Sizes::keys, W>& v, int source, int row, int rows,
                              int head, int from) const {
        const AttentionHeads& heads = input.forward.heads;
        const S* kv = one_of(input.forward.kv, source) + std::int64_t(row) * heads.kv_columns() + head * D + from;
        key_copies.begin(k, kv, rows, width_at(from));
        key_copies.begin(v, kv + heads.values(), rows, width_at(from));
    }
    __device__ std::int64_t statistic(int row, int head) const {
        return std::int64_t(row) * input.forward.heads.of_queries + head;
    }
};

// Returns the sum of x[d] y[d] for a quarter of all d < D; t < 4 selects the quarter. If `aligned` is set, x and y
// begin at multiples of 16 bytes.
template <class S>
__device__ float part_of_product(const S* x, const S* y, int D, int t, bool aligned) {
    float sum = 0;
    if (!aligned) {
        for (int d = t; d < D; d += 4) sum += float(x[d]) * float(y[d]);
        return sum;
    }
    constexpr int packet = per_packet<S>;
    for (int d = packet * t; d < D; d += 4 * packet) {
        const Packet of_x = packet_at(x + d), of_y = packet_at(y + d);
#pragma unroll
        for (int i = 0; i < packet; i++) sum = mul_add(float(number_of<S>(of_x, i)), float(number_of<S>(of_y, i)), sum);
    }
    return sum;
}

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
        pairs.level[r] = rows.there[r] ? input.lse[place.statistic(row, head)] * log2_of_e : 0;
        if (one_visit || !rows.there[r]) continue;
        const std::int64_t at = std::int64_t(row) * place.C + head * place.D;
        delta[r] = part_of_product(input.dy + at, input.y + at, place.D, t, input.forward.aligned);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) delta[r] = sum_of_quad(delta[r]);

    const auto q = rows_of_warp(tiles.q), dy = rows_of_warp(tiles.dy);
    const int of_keys = head / input.forward.heads.readers();
    const auto load_keys = [&](const Visit& visit, int v, int from) {
        auto& stage = tiles.stage[v % Sizes::stages];
        place.load_keys(stage.k, stage.v, visit.source(), visit.row, visit.rows(), of_keys, from);
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
            if (works) pairs.add_products(q, dy, stage.k, stage.v, place.D - c * W);
        });
        if (place.chunks > 1) {  // loads the keys again: the chunk of columns that this block computes
            __syncthreads();
            load_keys(visit, v, place.column);
            wait_for_copies();
            __syncthreads();
        }
        const Seen& seen = pairs.seen;
        if (seen.groups == 0) continue;
        float sum[2] = {0, 0};
        pairs.finish(input.forward, rows, visit.channel, head, delta, [&](int n, int s, bool) {
            sum[s / 2] = mul_add(pairs.p[n][s], pairs.dp[n][s], sum[s / 2]);
            if (!one_visit) pairs.dp[n][s] *= pairs.p[n][s];
        });
        const Areas<S, Rows<S, K, W>::stride, false, true> keys_of_tile(stage.k.all);
        if (one_visit) {
            if (seen.by_pairs) pairs.find_single_keys(sum);
#pragma unroll
            for (int r = 0; r < 2; r++) delta[r] = sum_of_quad(sum[r]);
            seen.each_pair<K>([&](int b, int h, int r, int e) {
                const int n = 4 * b + h, s = 2 * r + e;
                pairs.dp[n][s] = pairs.p[n][s] * (pairs.dp[n][s] - delta[r]);
            });
            each_constant<K / 8, 2>([&](auto n) {
                if (!(seen.groups >> n / 4 & 1)) return;
                multiply_columns<Sizes, 8 * n>(dq, as_factor<S>(pairs.dp[n], pairs.dp[n + 1]), keys_of_tile,
                                               place.columns);
            });
        } else {
            rest[0] += sum[0], rest[1] += sum[1];
            each_constant<K / 8, 2>([&](auto n) {
                if (!(seen.groups >> n / 4 & 1)) return;
                multiply_columns<Sizes, 8 * n>(dq, as_factor<S>(pairs.dp[n], pairs.dp[n + 1]), of_p,
                                               as_factor<S>(pairs.p[n], pairs.p[n + 1]), keys_of_tile, place.columns);
            });
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        rest[r] = sum_of_quad(rest[r]);
        if (!rows.there[r]) continue;
        const int row = tile.row + rows.first + 8 * r;
        if (t == 0 && blockIdx.z == 0) input.delta[place.statistic(row, head)] = delta[r] + rest[r];
        if (!to) continue;
        S* const first = to + std::int64_t(row) * place.C + head * place.D + place.column + 2 * t;
        const float scale = input.forward.scale;
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            put_two<Sizes>(first + 8 * n, 8 * n + 2 * t, (dq[n][2 * r] - rest[r] * of_p[n][2 * r]) * scale,
                           (dq[n][2 * r + 1] - rest[r] * of_p[n][2 * r + 1]) * scale, place.columns,
                           input.forward.aligned, add);
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
    unsigned groups[Sizes::warps];  // of each warp's query rows: Seen::groups. p and ds are not set for other groups.
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
        place.load_keys(tiles.k, tiles.v, keys.source(), keys.row, keys.rows(), of_keys, from);
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
            if (works)
                pairs.add_products(rows_of_warp(stage.q), rows_of_warp(stage.dy), tiles.k, tiles.v, place.D - c * W);
        });
        if (place.chunks > 1) {  // loads the queries again: the chunk of columns that this block computes
            __syncthreads();
            load_queries(visit, n, place.column);
            wait_for_copies();
        }
        if (works) {
            float lse[2], delta[2];
            rows.read(input.lse, input.delta, place.statistic(visit.row + rows.first, head), 8 * heads.of_queries, lse,
                      delta);
#pragma unroll
            for (int r = 0; r < 2; r++) pairs.level[r] = lse[r] * log2_of_e;
            pairs.finish(input.forward, rows, visit.channel, head, delta, [&](int k, int s, bool keep) {
                pairs.dp[k][s] *= pairs.p[k][s];
                pairs.p[k][s] = keep ? pairs.p[k][s] : 0;
            });
#pragma unroll
            for (int k = 0; k < K / 8; k++) {
                if (!(pairs.seen.groups >> k / 4 & 1)) continue;
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int i = rows.first + 8 * r, j = 8 * k + 2 * t;
                    store_two(tiles.p.at(i, j), pairs.p[k][2 * r], pairs.p[k][2 * r + 1], true, true, true);
                    store_two(tiles.ds.at(i, j), pairs.dp[k][2 * r], pairs.dp[k][2 * r + 1], true, true, true);
                }
            }
        }
        if (lane == 0) tiles.groups[warp] = pairs.seen.groups;
        __syncthreads();
        const Areas<S, Rows<S, M, K>::stride, true, true> of_p(tiles.p.at(0, slot)), of_ds(tiles.ds.at(0, slot));
        const Areas<S, Rows<S, M, W>::stride, false, true> of_q(stage.q.at(0, part)), of_dy(stage.dy.at(0, part));
        each_constant<M, 16>([&](auto i) {
            each_constant<down, 1>([&](auto m) {
                if (!(tiles.groups[i / 16] >> (slot + 16 * m) / 32 & 1)) return;
                const Matrices<S> p = of_p.template at<i, 16 * m>(), ds = of_ds.template at<i, 16 * m>();
                each_constant<across, 2>([&](auto c) {
                    if (!Sizes::exact && part + 8 * c >= place.columns) return;
                    const Matrices<S> q = of_q.template at<i, 8 * c>(), dy = of_dy.template at<i, 8 * c>();
                    multiply_matrices(dk[m][c], ds, q, 0), multiply_matrices(dk[m][c + 1], ds, q, 1);
                    multiply_matrices(dv[m][c], p, dy, 0), multiply_matrices(dv[m][c + 1], p, dy, 1);
                });
            });
        });
    }
    const float kept = float(input.forward.dropout.kept), scale = input.forward.scale;
#pragma unroll
    for (int m = 0; m < down; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int key = slot_of(slot + 16 * m + lane / 4 + 8 * r);
            if (key >= keys.rows()) continue;
            S* const row = to + std::int64_t(keys.row + key) * heads.kv_columns() + of_keys * place.D + place.column +
                           part + 2 * t;
#pragma unroll
            for (int c = 0; c < across; c++) {
                const int from = part + 8 * c + 2 * t;
                const float *of_k = dk[m][c] + 2 * r, *of_v = dv[m][c] + 2 * r;
                put_two<Sizes>(row + 8 * c, from, of_k[0] * scale, of_k[1] * scale, place.columns,
                               input.forward.aligned, add);
                put_two<Sizes>(row + heads.values() + 8 * c, from, of_v[0] * kept, of_v[1] * kept, place.columns,
                               input.forward.aligned, add);
            }
        }
}

}  // namespace

void attention_backward(View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph, AttentionRule rule,
                        Grad dq, Grads dkv) {
    const char* op = "attention_backward";
    check_attention_tensors(op, q, kv, rule, lse);
    check_attention_gradients(op, kv, dkv);
    const int D = int(q.columns()) / rule.heads;
    float* delta = workspace<Delta>(q.rows() * rule.heads);
    for_type(q.dtype, [&]<class S, class A>(S, A) {
        for_tile_sizes<S>(D, graph, [&](auto sizes) {
            using Sizes = decltype(sizes);
            BackwardInput<S> input{attention_input<Sizes>(op, q, kv, graph, rule), dy.as<S>(), y.as<S>(),
                                   lse.as<float>(), delta};
            bool& aligned = input.forward.aligned;
            aligned =
                aligned && is_aligned(dy.data, 16) && is_aligned(y.data, 16) && (!dq || is_aligned(dq.view.data, 16));
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

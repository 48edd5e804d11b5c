// SPDX-License-Identifier: MIT
// Shared by the CUDA kernels of softmax attention: their arguments, the tables of an attention mask in GPU memory,
// tiles in shared memory, and products of these tiles. The kernels follow FlashAttention-2 (Dao 2023). A CUDA block
// computes the results of one tile of one head. For a tile of queries, it loops over the key tiles that the queries
// see; for a tile of keys, it loops over the query tiles that see the keys. Each warp computes the scores of 16 query
// rows, and keeps the scores in registers, in the order in which the tensor cores return them. If a head is wider than
// a tile, its columns are cut into chunks, and each block computes one chunk of the results.
#pragma once
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/ops/cuda/attention_tiles.cuh"
#include "engine/ops/cuda/device_memory.cuh"
#include "engine/ops/cuda/draws.cuh"
#include "engine/ops/cuda/fragments.cuh"
#include "engine/ops/cuda/multiply.h"

namespace masquerade::DEVICE {

constexpr float log2_of_e = 1.44269504f, log_of_2 = 0.693147181f;

// How many warps and threads a CUDA block has, and how many query rows and keys its tiles have. S is the storage type
// of the tensors. W is the number of columns of a chunk, the part of a head that fits in a tile. If `one_chunk` is set,
// all heads have exactly W columns. The kernels then know D when they are compiled, and need no loops over chunks.
template <class Storage, int columns, int warps_of_block, bool one_chunk>
struct TileSizes {
    using S = Storage;
    static constexpr int W = columns, warps = warps_of_block, threads = 32 * warps, queries = 16 * warps;
    static constexpr int keys = W <= 64 && warps == 4 ? 64 : 32;
    static constexpr bool exact = one_chunk;
    // The number of blocks that must fit on a multiprocessor at once. Together, these blocks have 256 threads. A
    // multiprocessor has 65536 registers, so ptxas may still give each thread up to 255 registers.
    static constexpr int blocks = 256 / threads;
    // Number of buffers for the tiles that a block loops over. If there are two, the next tile can be copied to one
    // buffer while products read the other.
    static constexpr int stages = sizeof(S) == 2 ? 2 : 1;
};

// The TilePlan of an attention mask (attention_tiles.cuh) in GPU memory: the tiles, and the pairs of tiles that attend
// to each other.
struct Tables {
    const AttentionTile *query_tiles, *key_tiles;
    const Visit *visits, *visits_by_key;
    const std::uint64_t* seen;
    int query_tile_count, key_tile_count;
};

// The arguments of an attention kernel. q is (Nq,H D): Nq query rows with H heads of D columns. kv[s] is (Nk,2 G D): Nk
// key rows with the keys of G heads, then the values of G heads. AttentionHeads describes this layout.
template <class S>
struct AttentionInput {
    Tables tables;
    const S *q, *kv[4];
    AttentionHeads heads;
    float scale;                     // factor of the scores: 1 / sqrt(D)
    float scale2;                    // scale log2(e): exp(scale s) = 2^(scale2 s)
    bool aligned;                    // whether each head of each row begins at a multiple of 16 bytes
    const int *document, *position;  // for each query row; they select the random bits of dropout
    KeyedStream stream;              // of dropout
    AttentionDropout dropout;
};

// Returns all[s], but compares s with constants instead of using it as an index. If an array is indexed with a number
// that is not a constant, the compiler copies the array into local memory, which is slow.
template <class P>
__device__ P one_of(const P (&all)[4], int s) {
    return s == 0 ? all[0] : s == 1 ? all[1] : s == 2 ? all[2] : all[3];
}

// A tile in shared memory. Its stride is chosen so that rows are aligned to 16 bytes, and 8 consecutive rows begin in
// different banks.
template <class S, int M, int N>
struct Rows {
    static constexpr int stride = N + 16 / int(sizeof(S));
    alignas(16) S all[M * stride];
    __device__ S* at(int i, int j) { return all + i * stride + j; }
    __device__ const S* at(int i, int j) const { return all + i * stride + j; }
};

// Key j of a tile is stored in row (slot) slot_of(j) of shared memory. Within 32 keys, key 8t + 2h + e is in slot
// 8h + 2t + e, for t < 4, h < 4 and e < 2. The reason is dropout, for which one random draw serves 8 consecutive keys.
// The scores of 32 slots are four products of 8 columns each, and a lane with lane % 4 = t has columns 2t and 2t + 1 of
// each product. In this order of the keys, the lane's eight scores of a row belong to the keys 8t to 8t + 7, which
// share a draw. slot_of() is its own inverse.
HD constexpr int slot_of(int j) { return (j & ~31) | (j & 6) << 2 | (j >> 2 & 6) | (j & 1); }

// Copies rows of global memory, which are `stride` numbers apart, to tiles of M rows and W columns. If `keys` is set,
// row i of global memory is stored in row slot_of(i) of the tile.
template <class Sizes, bool keys, int M, int W = Sizes::W, class S = typename Sizes::S>
class RowCopies {
    static constexpr int threads = Sizes::threads, packet = per_packet<S>, across = W / packet;
    // `step` is a power of two, the row of a thread's first packet is below `step`, and n is a multiple of `step`. The
    // slot of row + n is therefore slot_of(row) + slot_of(n).
    static constexpr int step = threads / across;
    static_assert(threads % across == 0, "each thread copies one column of packets");
    static constexpr int place(int row) { return (keys ? slot_of(row) : row) * Rows<S, M, W>::stride; }

    int stride_, row_, column_;  // row and column of the first packet that this thread copies
    bool aligned_;
    std::int64_t first_, down_;  // place of this packet, and from one packet to the next one

  public:
    __device__ RowCopies(int stride, bool aligned)
        : stride_(stride),
          row_(int(threadIdx.x) / across),
          column_(int(threadIdx.x) % across * packet),
          aligned_(aligned),
          first_(std::int64_t(row_) * stride + column_),
          down_(std::int64_t(step) * stride) {}

    // Begins to copy: to(i, j) = from[i * stride + j] for i < rows and j < columns. Products read whole groups of 32
    // rows and 16 columns. The elements of these groups beyond `rows` and `columns` are therefore set to 0. If
    // Sizes::exact is set, `columns` is W.
    __device__ void begin(Rows<S, M, W>& to, const S* from, int rows, int columns) const {
        const int height = M <= 32 || rows > 32 ? M : 32, width = (columns + 15) / 16 * 16;
        if (aligned_) {
            const AsyncCopies<S> first(to.all + place(row_) + column_);
            const S* at = from + first_;
            if (Sizes::exact && rows == M) {
                each_constant<M, step>([&](auto n) { first.template begin<place(n)>(at), at += down_; });
            } else if (column_ < width) {
                const int count = column_ < columns ? rows - row_ : 0;
                each_constant<M, step>([&](auto n) {
                    if (n < height) first.template begin<place(n)>(at, n < count);
                    at += down_;
                });
            }
        } else {
#pragma unroll 1
            for (int n = int(threadIdx.x); n < height * width; n += threads) {
                const int i = n / 16 % height, j = n / 16 / height * 16 + n % 16;
                to.all[place(i) + j] = i < rows && j < columns ? from[std::int64_t(i) * stride_ + j] : S(0.0f);
            }
        }
    }
};

// Products of a warp. sum[n] contains the columns 8n to 8n + 7 of the result, distributed over the lanes like the
// matrix d of multiply_fragments() (fragments.cuh). A tile of keys is processed in groups of 32 slots, that is, rows in
// shared memory (slot_of()). If no query row of the warp sees a key of group b, bit b of `groups` is 0, and the group
// is left out: its sums have no defined values.
//
// multiply_rows: result(i, n) = sum over d < columns of left(i, d) right(n, d). `left` are the Areas of the warp's
// query rows. If the sizes are not exact, the sum is added to `sum` instead, as a chunk of a longer sum.
template <class Sizes, class Left, class S, int K, int W>
__device__ void multiply_rows(float (&sum)[K / 8][4], const Left& left, const Rows<S, K, W>& right, unsigned groups,
                              int columns) {
    const Areas<S, Rows<S, K, W>::stride, true, false> of_right(right.all);
    each_constant<K, 32>([&](auto n) {
        if (!(groups >> n / 32 & 1)) return;
        each_constant<W, 16>([&](auto d) {
            if (!Sizes::exact && d >= columns) return;
            constexpr bool begins = Sizes::exact && d == 0;
            const Matrices<S> a = left.template at<0, d>();
            each_constant<2, 1>([&](auto half) {
                constexpr int first = n + 16 * half;
                const Matrices<S> b = of_right.template at<first, d>();
                multiply_matrices(sum[first / 8], a, b, 0, begins);
                multiply_matrices(sum[first / 8 + 1], a, b, 1, begins);
            });
        });
    });
}
// multiply_columns: result(i, c) += sum over k of left(i, k) right(first + k, c), for c < columns and k < 16. `right`
// begins at the tile's first row. The second form does it for two results, with the same right factor.
template <class Sizes, int first, class S, class Right>
__device__ void multiply_columns(float (&sum)[Sizes::W / 8][4], const Matrices<S>& left, const Right& right,
                                 int columns) {
    each_constant<Sizes::W, 16>([&](auto c) {
        if (!Sizes::exact && c >= columns) return;
        const Matrices<S> b = right.template at<first, c>();
        multiply_matrices(sum[c / 8], left, b, 0);
        multiply_matrices(sum[c / 8 + 1], left, b, 1);
    });
}
template <class Sizes, int first, class S, class Right>
__device__ void multiply_columns(float (&sum)[Sizes::W / 8][4], const Matrices<S>& left, float (&sum2)[Sizes::W / 8][4],
                                 const Matrices<S>& left2, const Right& right, int columns) {
    each_constant<Sizes::W, 16>([&](auto c) {
        if (!Sizes::exact && c >= columns) return;
        const Matrices<S> b = right.template at<first, c>();
        multiply_matrices(sum[c / 8], left, b, 0), multiply_matrices(sum[c / 8 + 1], left, b, 1);
        multiply_matrices(sum2[c / 8], left2, b, 0), multiply_matrices(sum2[c / 8 + 1], left2, b, 1);
    });
}
// Converts the sums of two neighbouring products of 8 columns each to the left factor (16,16) of another product. If S
// is bf16, the sums are rounded to bf16.
template <class S>
__device__ Matrices<S> as_factor(const float (&first)[4], const float (&second)[4]) {
    Matrices<S> all;
    all.set(0, first[0], first[1]), all.set(1, first[2], first[3]);
    all.set(2, second[0], second[1]), all.set(3, second[2], second[3]);
    return all;
}
template <int N>
__device__ void clear(float (&sum)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int s = 0; s < 4; s++) sum[n][s] = 0;
}
// Sum and maximum over the four lanes with the same lane / 4. Together, these lanes have the 8 columns of two rows of a
// product.
__device__ inline float sum_of_quad(float x) {
    x += lane_xor(x, 1);
    return x + lane_xor(x, 2);
}
__device__ inline float top_of_quad(float x) {
    x = std::fmax(x, lane_xor(x, 1));
    return std::fmax(x, lane_xor(x, 2));
}

// Which keys of a key tile a lane's two query rows see (TwoRows).
struct Seen {
    unsigned groups = 0;    // bit b: a query row of the warp sees one of the 32 keys of group b
    unsigned by_pairs = 0;  // 0: every query row of the tile sees every key, and `keys` is not set
    // keys[r][b] of lane t = lane % 4: bit 2h + e says whether row r sees key 32b + 8t + 2h + e, for h < 4 and e < 2
    // (slot_of()).
    unsigned keys[2][2];

    __device__ bool at(int r, int b, int h, int e) const { return keys[r][b] >> (2 * h + e) & 1; }
    // Calls f(b, h, r, e) for each pair of the lane: row r, key 32b + 8t + 2h + e. Groups of which no key is seen are
    // left out.
    template <int K, class F>
    __device__ void each_pair(F f) const {
#pragma unroll
        for (int b = 0; b < K / 32; b++) {
            if (!(groups >> b & 1)) continue;
#pragma unroll
            for (int h = 0; h < 4; h++)
#pragma unroll
                for (int s = 0; s < 4; s++) f(b, h, s / 2, s % 2);
        }
    }
};

// The Areas of a tile of queries, from the warp's first row on.
template <class S, int M, int W>
__device__ Areas<S, Rows<S, M, W>::stride, false, false> rows_of_warp(const Rows<S, M, W>& tile) {
    return Areas<S, Rows<S, M, W>::stride, false, false>(tile.at(int(threadIdx.x) / 32 * 16, 0));
}

// The two query rows whose scores a lane has in the products of its warp: rows `first` and `first` + 8 of the tile.
template <class S>
struct TwoRows {
    int first;
    bool there[2];
    std::uint32_t document[2], position[2];

    __device__ TwoRows(const AttentionInput<S>& input, int row, int rows)
        : first(int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4) {
#pragma unroll
        for (int r = 0; r < 2; r++) there[r] = first + 8 * r < rows, document[r] = position[r] = 0;
        if (input.dropout.threshold == 0) return;
        int of_document[2], of_position[2];
        read(input.document, input.position, row + first, 8, of_document, of_position);
#pragma unroll
        for (int r = 0; r < 2; r++)
            document[r] = std::uint32_t(of_document[r]), position[r] = std::uint32_t(of_position[r]);
    }
    // Reads to_a[r] = a[at + step r] and to_b[r] = b[at + step r] for the rows that are there, and 0 for the others.
    // `at` belongs to row `first`. The four lanes that have the same rows share the work: each of them reads one
    // number.
    template <class T>
    __device__ void read(const T* a, const T* b, std::int64_t at, int step, T (&to_a)[2], T (&to_b)[2]) const {
        const unsigned lane = threadIdx.x % 32, r = lane % 2;
        const T mine = there[0] && (r == 0 || there[1]) ? (lane & 2 ? b : a)[at + int(r) * step] : T(0);
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            to_a[i] = __shfl_sync(0xffffffffu, mine, int((lane & ~3u) + i));
            to_b[i] = __shfl_sync(0xffffffffu, mine, int((lane & ~3u) + 2 + i));
        }
    }

    // Returns which of the `keys` keys of a key tile the two rows see. A tile has room for K keys.
    template <int K>
    __device__ Seen find_seen(const AttentionInput<S>& input, int mask, int keys) const {
        Seen seen;
        if (mask < 0 && keys == K) {
            seen.groups = (1u << K / 32) - 1;
            return seen;
        }
        seen.by_pairs = 1;
        std::uint64_t of_row[2];
#pragma unroll
        for (int r = 0; r < 2; r++)
            of_row[r] = !there[r]  ? 0
                        : mask < 0 ? ~std::uint64_t(0) >> (64 - keys)
                                   : input.tables.seen[mask + first + 8 * r];
#pragma unroll
        for (int b = 0; b < 2; b++) {
#pragma unroll
            for (int r = 0; r < 2; r++) seen.keys[r][b] = unsigned(of_row[r] >> 32 * b);
            if (__ballot_sync(0xffffffffu, seen.keys[0][b] | seen.keys[1][b])) seen.groups |= 1u << b;
#pragma unroll
            for (int r = 0; r < 2; r++) seen.keys[r][b] >>= threadIdx.x % 4 * 8;
        }
        return seen;
    }
    // Returns the draw of the lane's first 8 keys in a tile whose first key has this channel.
    static __device__ std::uint32_t first_block(int head, int channel) {
        return AttentionDropout::block_of(head, channel) + threadIdx.x % 4;
    }
    // Returns in draws[r] the random draw of row r for the 8 keys 32b + 8t to 32b + 8t + 7 of a tile, where t = lane %
    // 4. `channel` is the channel of the tile's first key, and `block` is first_block(head, channel).
    __device__ void draw(const AttentionInput<S>& input, int channel, std::uint32_t block, int b,
                         Four (&draws)[2]) const {
        const auto draw_from = [&](std::uint32_t from) {
#pragma unroll
            for (int r = 0; r < 2; r++)
                draws[r] = input.stream.counter(document[r], position[r], from + std::uint32_t(4 * b));
            philox_together(draws, input.stream.keys);
        };
        // The offset of the channel in its draw. It is always 0 if no key segments overlap.
        const unsigned odd = unsigned(channel) % AttentionDropout::keys_a_draw;
        if (odd == 0) return draw_from(block);
        // The bits of the 8 keys come from two draws.
        Four next[2];
#pragma unroll 1
        for (std::uint32_t n = 2; n-- > 0;) {
            next[0] = draws[0], next[1] = draws[1];
            draw_from(block + n);
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            std::uint32_t all[8];
#pragma unroll
            for (int i = 0; i < 4; i++) all[i] = draws[r].v[i], all[i + 4] = next[r].v[i];
#pragma unroll
            for (int i = 0; i < 6; i++) all[i] = odd & 4 ? all[i + 2] : all[i];
#pragma unroll
            for (int i = 0; i < 5; i++) all[i] = odd & 2 ? all[i + 1] : all[i];
#pragma unroll
            for (int i = 0; i < 4; i++) draws[r].v[i] = odd & 1 ? all[i] >> 16 | all[i + 1] << 16 : all[i];
        }
    }
};

// A visit is a pair of a query tile and a key tile. Loads the tiles of one visit, one chunk of columns after another,
// and calls use(c) when chunk c is in shared memory. If `ahead` is set, there is only one chunk, and the caller has
// begun to copy it. load_next() then begins to copy the tiles of the next visit, and these copies run while use()
// computes.
template <class Load, class LoadNext, class Use>
__device__ void each_chunk(int chunks, bool ahead, Load load, LoadNext load_next, Use use) {
    for (int c = 0; c < chunks; c++) {
        if (!ahead) {
            __syncthreads();  // waits until no thread reads the old tiles any more
            load(c);
        }
        wait_for_copies();
        __syncthreads();
        if (ahead) load_next();
        use(c);
    }
}

// Stores x and y in columns c and c + 1 of a row or, if `add` is set, adds them to the old numbers. `to` points to
// column c. The row has `columns` columns; numbers beyond its end are not stored. If Sizes::exact is set, there are
// none.
template <class Sizes, class S>
__device__ void put_two(S* to, int c, float x, float y, int columns, bool aligned, bool add) {
    const bool first = Sizes::exact || c < columns, second = Sizes::exact || c + 1 < columns;
    if (add) {
        if (first) x += float(to[0]);
        if (second) y += float(to[1]);
    }
    store_two(to, x, y, first, second, aligned);
}

// Keeps the tables of the last 8 segment graphs (attention masks) in GPU memory, because all layers of a model use the
// same mask, in the forward and in the backward. An entry is found by comparing all that the tables depend on. A
// caller may therefore change a graph between two calls. A graph is checked when it gets an entry.
//
// No function of this class waits for the GPU or reads from it. A step that is captured as a CUDA graph sends its own
// tables and never uses tables that were sent before the capture. The captures of similar steps therefore record the
// same copies.
class TableKeeper {
  public:
    Tables find(const char* op, const View& q, const Views& kv, const SegmentGraph& graph, int queries, int keys) {
        std::vector<std::int64_t> sizes = {q.rows(), queries, keys};
        for (int s = 0; s < kv.count; s++) sizes.push_back(kv[s].rows());
        for (const Kept& kept : kept_)
            if (kept.capture == capture_number() && kept.sizes == sizes && same(kept.graph, graph)) return kept.tables;
        check_attention_graph(op, q, kv, graph);
        std::vector<char> covered;
        find_covered_rows(op, q, graph, covered);
        Kept& kept = kept_[next_++ % (sizeof kept_ / sizeof *kept_)];
        kept.sizes.clear();  // if send() throws, no later call finds this entry
        kept.tables = send(plan_tiles(graph, kv, covered, queries, keys), kept.upload);
        kept.graph = graph, kept.sizes = std::move(sizes);
        kept.capture = capture_number();
        return kept.tables;
    }

  private:
    struct Kept {
        SegmentGraph graph;
        std::vector<std::int64_t> sizes;  // rows of q, rows and keys of a tile, and rows of each kv
        std::uint64_t capture = 0;        // capture_number() when the tables were sent
        Upload upload;
        Tables tables{};
    };
    Kept kept_[8];
    std::size_t next_ = 0;

    // Whether both graphs have the same segments, ranks and bits. The tables depend on nothing else of a graph.
    static bool same(const SegmentGraph& a, const SegmentGraph& b) {
        const auto equal = [](const auto& x, const auto& y) {
            return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0);
        };
        return equal(a.keys, b.keys) && equal(a.queries, b.queries) && equal(a.sees, b.sees) &&
               equal(a.query_rank, b.query_rank) && equal(a.key_rank, b.key_rank) && equal(a.bits, b.bits);
    }

    template <class F>
    static void each_table(const TilePlan& plan, Tables& to, F f) {
        f(plan.query_tiles, to.query_tiles), f(plan.key_tiles, to.key_tiles);
        f(plan.visits, to.visits), f(plan.visits_by_key, to.visits_by_key), f(plan.seen, to.seen);
    }

    // Sends all tables to the GPU in one copy, one table after another, each padded to a multiple of 16 bytes.
    static Tables send(const TilePlan& plan, Upload& upload) {
        Tables tables{};
        tables.query_tile_count = int(plan.query_tiles.size());
        tables.key_tile_count = int(plan.key_tiles.size());
        const auto room_of = [](const auto& all) { return (all.size() * sizeof all[0] + 15) / 16 * 16; };
        std::size_t bytes = 0;
        each_table(plan, tables, [&](const auto& all, auto&) { bytes += room_of(all); });
        char* to = upload.write(bytes);
        each_table(plan, tables, [&](const auto& all, auto&) {
            if (!all.empty()) std::memcpy(to, all.data(), all.size() * sizeof all[0]);
            to += room_of(all);
        });
        const char* there = upload.send();
        each_table(plan, tables, [&](const auto& all, auto& table) {
            table = reinterpret_cast<decltype(all.data())>(there);
            there += room_of(all);
        });
        return tables;
    }
};

// Not thread-safe. No lock is needed, because only one thread calls ops, all on one stream.
inline TableKeeper tables_of_graphs;

// Calls f(sizes) with the TileSizes for heads of D columns and numbers of type S. In bf16, heads of 32, 64 and 128
// columns have sizes of their own, which are exact. A block usually has tiles of 64 query rows. Short query segments
// leave many rows of such tiles unused. If tiles of 16 rows need less than half as many rows in total, a block for
// heads of 32 or 64 columns has one warp and tiles of 16 query rows. Such a block also has smaller tiles of keys, over
// which sums are rounded differently. With ProductRule::deterministic, the bits of a row must not depend on the other
// segments of the batch, so all tiles then have 64 query rows.
template <class S, class F>
void for_tile_sizes(int D, const SegmentGraph& graph, F f) {
    if constexpr (sizeof(S) == 4) {
        f(TileSizes<S, 64, 2, false>{});
    } else {
        std::int64_t in_tiles_of_16 = 0, in_tiles_of_64 = 0;
        for (const QuerySegment& q : graph.queries) {
            const std::int64_t rows = std::int64_t(q.end) - q.begin;
            in_tiles_of_16 += (rows + 15) / 16 * 16;
            in_tiles_of_64 += (rows + 63) / 64 * 64;
        }
        const bool short_segments = !product_rule().deterministic && in_tiles_of_64 > 2 * in_tiles_of_16;
        if (D == 128)
            f(TileSizes<S, 128, 4, true>{});
        else if (D == 64)
            short_segments ? f(TileSizes<S, 64, 1, true>{}) : f(TileSizes<S, 64, 4, true>{});
        else if (D == 32)
            short_segments ? f(TileSizes<S, 32, 1, true>{}) : f(TileSizes<S, 32, 4, true>{});
        else
            f(TileSizes<S, 64, 4, false>{});
    }
}

template <class Sizes, class S = typename Sizes::S>
AttentionInput<S> attention_input(const char* op, const View& q, const Views& kv, const SegmentGraph& graph,
                                  const AttentionRule& rule) {
    AttentionInput<S> input{};
    input.tables = tables_of_graphs.find(op, q, kv, graph, Sizes::queries, Sizes::keys);
    input.q = q.as<S>();
    input.heads = attention_heads(q, kv, rule.heads);
    input.aligned = input.heads.D % per_packet<S> == 0 && is_aligned(q.data, 16);
    for (int s = 0; s < kv.count; s++) {
        input.kv[s] = kv[s].as<S>();
        input.aligned = input.aligned && is_aligned(kv[s].data, 16);
    }
    const double scale = 1 / std::sqrt(double(input.heads.D));
    input.scale = float(scale), input.scale2 = float(scale * 1.4426950408889634);
    input.document = rule.rows.document.data, input.position = rule.rows.position.data;
    input.stream = rule.stream;
    input.dropout = AttentionDropout(rule.dropout);
    return input;
}

// Launches the kernel with one block for each combination of a tile, a head and a chunk of columns.
template <auto kernel, class Sizes, class Shared, class... Arguments>
void launch_tiles(int tiles, int heads, int D, const Arguments&... arguments) {
    if (tiles == 0) return;
    const int chunks = std::max(1, (D + Sizes::W - 1) / Sizes::W);
    launch<kernel>(dim3(unsigned(tiles), unsigned(heads), unsigned(chunks)), Sizes::threads, sizeof(Shared),
                   arguments...);
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Shared by the CUDA kernels of softmax attention: their arguments, the tables of an attention mask in GPU memory,
// tiles in shared memory, and products of these tiles. The kernels follow FlashAttention-2 (Dao 2023). A CUDA block
// computes the results of one tile of one head. For a tile of queries, it loops over the key tiles that the queries
// see; for a tile of keys, it loops over the query tiles that see the keys. Each warp computes the scores of 16 query
// rows, and keeps the scores in registers, in the order in which the tensor cores return them. If a head is wider than
// a tile, its columns are cut into chunks, and each block computes one chunk of the results.
#pragma once
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/ops/cuda/attention_tiles.cuh"
#include "engine/ops/cuda/device_memory.cuh"
#include "engine/ops/cuda/fragments.cuh"

namespace masquerade::DEVICE {

constexpr float log2_of_e = 1.44269504f;

// How many warps and threads a CUDA block has, and how many query rows and keys its tiles have. S is the storage type
// of the tensors. W is the number of columns of a chunk, the part of a head that fits in a tile.
template <class Storage, int columns, int warps_of_block>
struct TileSizes {
    using S = Storage;
    static constexpr int W = columns, warps = warps_of_block, threads = 32 * warps, queries = 16 * warps;
    static constexpr int keys = W == 64 && warps == 4 ? 64 : 32;
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
    bool aligned;                    // whether each head of each row begins at a multiple of 16 bytes
    const int *document, *position;  // for each query row; they select the random bits of dropout
    Stream stream;
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
HD int slot_of(int j) { return (j & ~31) | (j & 6) << 2 | (j >> 2 & 6) | (j & 1); }

// Begins to copy rows of global memory, which are `stride` numbers apart, to a tile: to(i, j) = from[i * stride + j]
// for i < rows and j < columns. Products read whole groups of 32 rows and 16 columns. The elements of these groups
// beyond `rows` and `columns` are therefore set to 0. If `keys` is set, row i of global memory is stored in row
// slot_of(i) of the tile.
template <int threads, bool keys, class S, int M, int W>
__device__ void load_rows(Rows<S, M, W>& to, const S* from, int stride, int rows, int columns, bool aligned) {
    constexpr int packet = per_packet<S>, across = W / packet;
    static_assert(threads % across == 0, "each thread copies one column of packets");
    const int height = M <= 32 || rows > 32 ? M : 32, width = (columns + 15) / 16 * 16, thread = int(threadIdx.x);
    if (aligned) {
        // `step` is a power of two, i is below `step`, and n is a multiple of `step`. Therefore i and n have no bit in
        // common, and the slot of row i + n is slot_of(i) + slot_of(n).
        constexpr int step = threads / across;
        const int i = thread / across, j = thread % across * packet, count = j < columns ? rows - i : 0;
        S* first = to.at(keys ? slot_of(i) : i, j);
        const S* at = from + std::int64_t(i) * stride + j;
#pragma unroll
        for (int n = 0; n < M; n += step, at += step * stride) {
            if (n >= height || j >= width) break;
            copy_async(first + (keys ? slot_of(n) : n) * to.stride, at, n < count);
        }
    } else {
#pragma unroll 1
        for (int n = thread; n < height * width; n += threads) {
            const int i = n / 16 % height, j = n / 16 / height * 16 + n % 16;
            *to.at(keys ? slot_of(i) : i, j) = i < rows && j < columns ? from[std::int64_t(i) * stride + j] : S(0.0f);
        }
    }
}

// Products of a warp. sum[n] contains the columns 8n to 8n + 7 of the result, distributed over the lanes like the
// matrix d of multiply_fragments() (fragments.cuh). A tile of keys is processed in groups of 32 slots, that is, rows in
// shared memory (slot_of()). If no query row of the warp sees a key of group b, bit b of `groups` is 0, and the group
// is left out.
//
// multiply_rows: result(i, n) += sum over d < columns of left(i, d) right(n, d). `left` points to the warp's first
// query row.
template <int W, class S, int K>
__device__ void multiply_rows(float (&sum)[K / 8][4], const S* left, int left_stride, const Rows<S, K, W>& right,
                              unsigned groups, int columns) {
#pragma unroll sizeof(S) == 2 ? 4 : 1
    for (int d = 0; d < W; d += 16) {
        if (d >= columns) break;
        const Matrices<S> a = matrices_at<false, false>(left + d, left_stride);
#pragma unroll
        for (int n = 0; n < K; n += 16) {
            if (!(groups >> n / 32 & 1)) continue;
            const Matrices<S> b = matrices_at<true, false>(right.at(n, d), right.stride);
            multiply_matrices(sum[n / 8], a, b, 0);
            multiply_matrices(sum[n / 8 + 1], a, b, 1);
        }
    }
}
// multiply_columns: result(i, c) += sum over k of left(i, k) right(k, c), for c < columns and 16 rows k from `first`
// on.
template <int W, class S, int M>
__device__ void multiply_columns(float (&sum)[W / 8][4], const Matrices<S>& left, const Rows<S, M, W>& right, int first,
                                 int columns) {
#pragma unroll
    for (int c = 0; c < W; c += 16) {
        if (c >= columns) break;
        const Matrices<S> b = matrices_at<false, true>(right.at(first, c), right.stride);
        multiply_matrices(sum[c / 8], left, b, 0);
        multiply_matrices(sum[c / 8 + 1], left, b, 1);
    }
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

// The two query rows whose scores a lane has in the products of its warp: rows `first` and `first` + 8 of the tile.
template <class S>
struct TwoRows {
    int first;
    bool there[2];
    std::uint32_t document[2], position[2];

    __device__ TwoRows(const AttentionInput<S>& input, int row, int rows)
        : first(int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            there[r] = first + 8 * r < rows;
            const bool draws = input.dropout.threshold > 0 && there[r];
            document[r] = draws ? std::uint32_t(input.document[row + first + 8 * r]) : 0;
            position[r] = draws ? std::uint32_t(input.position[row + first + 8 * r]) : 0;
        }
    }

    // Finds which keys the two rows see in a key tile with `keys` keys. With t = lane % 4, sets bit 32b + 2h + e of
    // seen[r] if row r sees key 32b + 8t + 2h + e, for b < 2, h < 4 and e < 2 (slot_of()). Returns a word whose bit b
    // is set if any row of the warp sees one of the 32 keys of group b.
    __device__ unsigned find_seen(const AttentionInput<S>& input, int mask, int keys, std::uint64_t (&seen)[2]) const {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            seen[r] = !there[r]  ? 0
                      : mask < 0 ? ~std::uint64_t(0) >> (64 - keys)
                                 : input.tables.seen[mask + first + 8 * r];
        }
        unsigned groups = 0;
        for (int b = 0; b < 2; b++)
            if (__ballot_sync(0xffffffffu, (seen[0] | seen[1]) >> 32 * b & 0xffffffffu)) groups |= 1u << b;
        for (int r = 0; r < 2; r++) seen[r] >>= threadIdx.x % 4 * 8;
        return groups;
    }
    // Returns the random draw of row r for the 8 keys 32b + 8t to 32b + 8t + 7 of a tile, where t = lane % 4. `channel`
    // is the channel of the tile's first key. If `channel` is not a multiple of 8, the bits of the 8 keys come from two
    // draws.
    __device__ Four draw(const AttentionInput<S>& input, int r, int head, int channel, int b) const {
        const std::uint32_t block = AttentionDropout::block_of(head, channel) + std::uint32_t(4 * b) + threadIdx.x % 4;
        // The offset of the channel in its draw. It is always 0 if no key segments overlap.
        const unsigned odd = unsigned(channel) % AttentionDropout::keys_a_draw;
        Four words{}, next{};
#pragma unroll 1
        for (std::uint32_t n = 0; n < (odd ? 2 : 1); n++) {
            words = next;
            next = input.stream.at(document[r], position[r], block + n);
        }
        if (odd == 0) return next;
        std::uint32_t all[8];
#pragma unroll
        for (int i = 0; i < 4; i++) all[i] = words.v[i], all[i + 4] = next.v[i];
#pragma unroll
        for (int i = 0; i < 6; i++) all[i] = odd & 4 ? all[i + 2] : all[i];
#pragma unroll
        for (int i = 0; i < 5; i++) all[i] = odd & 2 ? all[i + 1] : all[i];
#pragma unroll
        for (int i = 0; i < 4; i++) words.v[i] = odd & 1 ? all[i] >> 16 | all[i + 1] << 16 : all[i];
        return words;
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

// Stores x and y in columns c and c + 1 of a row or, if `add` is set, adds them to the old numbers. The row has
// `columns` columns; numbers beyond its end are not stored.
template <class S>
__device__ void put_two(S* row, int c, float x, float y, int columns, bool aligned, bool add) {
    if (add) {
        if (c < columns) x += float(row[c]);
        if (c + 1 < columns) y += float(row[c + 1]);
    }
    store_two(row + c, x, y, c < columns, c + 1 < columns, aligned);
}

// Keeps the tables of the last 8 segment graphs (attention masks) in GPU memory, because all layers of a model use the
// same mask, in the forward and in the backward. An entry is found by comparing the whole content of the graph. A
// caller may therefore change a graph between two calls.
//
// No function of this class waits for the GPU or reads from it. A step that is captured as a CUDA graph sends its own
// tables and never uses tables that were sent before the capture. The captures of similar steps therefore record the
// same copies.
class TableKeeper {
  public:
    Tables find(const SegmentGraph& graph, const Views& kv, const std::vector<char>& covered, int queries, int keys) {
        std::string name;
        auto append = [&](const auto& all) {
            const std::size_t size = all.size();
            name.append(reinterpret_cast<const char*>(&size), sizeof size);
            name.append(reinterpret_cast<const char*>(all.data()), size * sizeof all[0]);
        };
        append(graph.keys), append(graph.queries), append(graph.sees);
        append(graph.query_rank), append(graph.key_rank), append(graph.bits);
        std::vector<std::int64_t> sizes = {std::int64_t(covered.size()), queries, keys};
        for (int s = 0; s < kv.count; s++) sizes.push_back(kv[s].rows());
        append(sizes);
        for (const Kept& kept : kept_)
            if (kept.name == name && kept.capture == capture_number()) return kept.tables;
        Kept& kept = kept_[next_++ % (sizeof kept_ / sizeof *kept_)];
        kept.name.clear();  // if send() throws, no later call finds this entry
        kept.tables = send(plan_tiles(graph, kv, covered, queries, keys), kept.upload);
        kept.name = name;
        kept.capture = capture_number();
        return kept.tables;
    }

  private:
    struct Kept {
        std::string name;
        std::uint64_t capture = 0;  // capture_number() when the tables were sent
        Upload upload;
        Tables tables{};
    };
    Kept kept_[8];
    std::size_t next_ = 0;

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

// Calls f(sizes) with the TileSizes for heads of D columns and numbers of type S. In bf16 with D <= 64, a block usually
// has tiles of 64 query rows. Short query segments leave many rows of such tiles unused. If tiles of 16 rows need less
// than half as many rows in total, a block has one warp and tiles of 16 query rows.
template <class S, class F>
void for_tile_sizes(int D, const SegmentGraph& graph, F f) {
    if constexpr (sizeof(S) == 4) {
        f(TileSizes<S, 64, 2>{});
    } else if (D > 64) {
        f(TileSizes<S, 128, 4>{});
    } else {
        std::int64_t in_tiles_of_16 = 0, in_tiles_of_64 = 0;
        for (const QuerySegment& q : graph.queries) {
            in_tiles_of_16 += (q.end - q.begin + 15) / 16 * 16;
            in_tiles_of_64 += (q.end - q.begin + 63) / 64 * 64;
        }
        if (in_tiles_of_64 > 2 * in_tiles_of_16)
            f(TileSizes<S, 64, 1>{});
        else
            f(TileSizes<S, 64, 4>{});
    }
}

template <class Sizes, class S = typename Sizes::S>
AttentionInput<S> attention_input(const char* op, const View& q, const Views& kv, const SegmentGraph& graph,
                                  const AttentionRule& rule) {
    std::vector<char> covered;
    find_covered_rows(op, q, graph, covered);
    AttentionInput<S> input{};
    input.tables = tables_of_graphs.find(graph, kv, covered, Sizes::queries, Sizes::keys);
    input.q = q.as<S>();
    input.heads = attention_heads(q, kv, rule.heads);
    input.aligned = input.heads.D % per_packet<S> == 0 && is_aligned(q.data, 16);
    for (int s = 0; s < kv.count; s++) {
        input.kv[s] = kv[s].as<S>();
        input.aligned = input.aligned && is_aligned(kv[s].data, 16);
    }
    input.scale = float(1 / std::sqrt(double(input.heads.D)));
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

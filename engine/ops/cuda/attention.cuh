// SPDX-License-Identifier: MIT
// Shared by the CUDA kernels of softmax attention: their arguments, the tables of an attention mask in GPU memory,
// and the check of which keys a query row sees. A block has 128 threads and computes one tile of rows of one head. A
// head wider than 128 columns is cut into chunks of 128 columns, and each block computes one chunk of the results.
#pragma once
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/ops/cuda/attention_tiles.cuh"
#include "engine/ops/cuda/device_memory.cuh"
#include "engine/ops/cuda/tile_product.cuh"

namespace masquerade::DEVICE {

constexpr int query_tile = 32;
constexpr int key_tile(int width) { return width == 128 ? 32 : 64; }  // number of key rows in a tile of `width` columns

// The tables of an attention mask, as pointers into GPU memory: its segment graph, and the graph's TilePlan
// (attention_tiles.cuh).
struct Tables {
    SegmentTables graph;
    const QueryTile* query_tiles;
    const KeyTile* key_tiles;
    const Visit* visits;
    const int *by_key, *seen_before;
    int query_tile_count, key_tile_count;
};

// The arguments of an attention kernel. q is (Nq,H D), with H query heads of D columns. kv[s] is (Nk,2 G D): the keys
// of G heads, then the values of G heads. AttentionHeads describes this layout.
template <class S>
struct AttentionInput {
    Tables tables;
    const S *q, *kv[4];
    AttentionHeads heads;
    float scale;                     // factor of the scores: 1 / sqrt(D)
    const int *document, *position;  // of each query row; they select dropout's random numbers
    Stream stream;
    std::uint32_t threshold;  // dropout keeps a probability if its 32 random bits are at least this; 0: no dropout
    float kept;               // factor of the probabilities that dropout keeps: 1 / (1 - rate)

    // Returns kv[s]. The function compares s instead of indexing with it, because the compiler would copy an array
    // with a computed index into local memory, which is slow.
    __device__ const S* source(int s) const { return s == 0 ? kv[0] : s == 1 ? kv[1] : s == 2 ? kv[2] : kv[3]; }
};

// Sets to(i, j) = from[i * stride + j] for i < rows and j < columns. A product may read more rows and columns of the
// tile, up to the numbers that filled() returns. The elements in these additional rows and columns are set to 0.
template <class S, int M, int N>
__device__ void load_tile(Tile<S, M, N>& to, const S* from, std::int64_t stride, int rows, int columns) {
    const int height = filled(rows, M), width = filled(columns, N);
    for (int n = int(threadIdx.x); n < height * width; n += tile_threads) {
        const int i = width == 16 ? n / 16 : n / N, j = width == 16 ? n % 16 : n % N;
        to(i, j) = i < rows && j < columns ? from[i * stride + j] : S(0.0f);
    }
}

// Which keys of a key tile are visible to query row i of a query tile, and the dropout factor of each key's
// probability. A thread computes these for the keys lane, lane + 32, ... of the tile, where `lane` is the thread's
// number in its warp. All threads of a warp must pass the same i, because they count the seen keys together.
template <int keys>
struct Sight {
    static constexpr int columns = keys / 32;
    bool sees[columns];
    float keep[columns];

    template <class S>
    __device__ Sight(const AttentionInput<S>& input, const QuerySegment& segment, const QueryTile& tile,
                     const KeyTile& of_keys, int visit_index, const Visit& visit, int i, int head) {
        const int lane = int(threadIdx.x) % 32, row = tile.row + i;
        for (int c = 0; c < columns; c++) {
            const int j = lane + 32 * c;
            sees[c] = j < of_keys.rows &&
                      (visit.whole || visible(input.tables.graph, segment, row, visit.key_segment, of_keys.row + j));
            keep[c] = 1;
        }
        if (input.threshold == 0) return;
        int before = input.tables.seen_before[std::int64_t(visit_index) * query_tile + i];
        for (int c = 0; c < columns; c++) {
            const unsigned all = __ballot_sync(0xffffffffu, sees[c]);
            const std::uint32_t channel = attention_channel(head, before + __popc(all & ((1u << lane) - 1)));
            before += __popc(all);
            if (!sees[c]) continue;
            const Four words =
                input.stream.at(std::uint32_t(input.document[row]), std::uint32_t(input.position[row]), channel / 4);
            const std::uint32_t low = channel & 1 ? words.v[1] : words.v[0],
                                high = channel & 1 ? words.v[3] : words.v[2];
            keep[c] = (channel & 2 ? high : low) >= input.threshold ? input.kept : 0;
        }
    }
};

// Keeps the tables of the last 8 segment graphs (attention masks) in GPU memory, because all layers of a model use
// the same mask, in the forward and in the backward. An entry is found by comparing the whole content of the graph. A
// caller may therefore change a graph without telling this class.
//
// No function of this class waits for the GPU or reads from it. A step that is captured as a CUDA graph sends its own
// tables and never uses tables that were sent before the capture. The captures of similar steps therefore record the
// same copies.
class TableKeeper {
  public:
    Tables find(const SegmentGraph& graph, const Views& kv, const std::vector<char>& covered, int keys, bool counts) {
        std::string name;
        auto append = [&](const auto& all) {
            const std::size_t size = all.size();
            name.append(reinterpret_cast<const char*>(&size), sizeof size);
            name.append(reinterpret_cast<const char*>(all.data()), size * sizeof all[0]);
        };
        append(graph.keys), append(graph.queries), append(graph.sees);
        append(graph.query_rank), append(graph.key_rank), append(graph.bits);
        std::vector<std::int64_t> sizes = {std::int64_t(covered.size()), keys, counts};
        for (int s = 0; s < kv.count; s++) sizes.push_back(kv[s].rows());
        append(sizes);
        for (const Kept& kept : kept_)
            if (kept.name == name && kept.capture == capture_number()) return kept.tables;
        Kept& kept = kept_[next_++ % (sizeof kept_ / sizeof *kept_)];
        kept.name.clear();  // if send() throws, no later call finds this entry
        kept.tables = send(graph, plan_tiles(graph, kv, covered, query_tile, keys, counts), kept.upload);
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
    static void each_table(const SegmentGraph& graph, const TilePlan& plan, Tables& to, F f) {
        f(graph.keys, to.graph.keys), f(graph.queries, to.graph.queries);
        f(graph.query_rank, to.graph.query_rank), f(graph.key_rank, to.graph.key_rank);
        f(graph.bits, to.graph.bits);
        f(plan.query_tiles, to.query_tiles), f(plan.key_tiles, to.key_tiles), f(plan.visits, to.visits);
        f(plan.by_key, to.by_key), f(plan.seen_before, to.seen_before);
    }

    // Sends all tables to the GPU in one copy. They lie one after another, each padded to a multiple of 16 bytes.
    static Tables send(const SegmentGraph& graph, const TilePlan& plan, Upload& upload) {
        Tables tables{};
        tables.query_tile_count = int(plan.query_tiles.size());
        tables.key_tile_count = int(plan.key_tiles.size());
        const auto room_of = [](const auto& all) { return (all.size() * sizeof all[0] + 15) / 16 * 16; };
        std::size_t bytes = 0;
        each_table(graph, plan, tables, [&](const auto& all, auto&) { bytes += room_of(all); });
        char* to = upload.write(bytes);
        each_table(graph, plan, tables, [&](const auto& all, auto&) {
            if (!all.empty()) std::memcpy(to, all.data(), all.size() * sizeof all[0]);
            to += room_of(all);
        });
        const char* there = upload.send();
        each_table(graph, plan, tables, [&](const auto& all, auto& table) {
            table = reinterpret_cast<decltype(all.data())>(there);
            there += room_of(all);
        });
        return tables;
    }
};

// Not thread-safe. No lock is needed, because only one thread calls ops, all on one stream.
inline TableKeeper tables_of_graphs;

// A head of D columns is cut into chunks of equal width. Calls f with this width: 32, 64 or 128, as a compile-time
// constant.
template <class F>
void for_width(int D, F f) {
    if (D <= 32) return f(std::integral_constant<int, 32>{});
    if (D <= 64) return f(std::integral_constant<int, 64>{});
    f(std::integral_constant<int, 128>{});
}

template <class S>
AttentionInput<S> attention_input(const char* op, const View& q, const Views& kv, const SegmentGraph& graph,
                                  const AttentionRule& rule, int width) {
    std::vector<char> covered;
    find_covered_rows(op, q, graph, covered);
    AttentionInput<S> input{};
    input.tables = tables_of_graphs.find(graph, kv, covered, key_tile(width), rule.dropout > 0);
    input.q = q.as<S>();
    for (int s = 0; s < kv.count; s++) input.kv[s] = kv[s].as<S>();
    input.heads = attention_heads(q, kv, rule.heads);
    input.scale = float(1 / std::sqrt(double(input.heads.D)));
    input.document = rule.rows.document.data, input.position = rule.rows.position.data;
    input.stream = rule.stream;
    input.threshold = attention_threshold(rule);
    input.kept = float(1 / (1 - double(rule.dropout)));
    return input;
}

// Launches the kernel with one block for each combination of a tile, a head and a chunk of columns.
template <auto kernel, class... Arguments>
void launch_tiles(int tiles, int heads, int D, int width, std::size_t shared_bytes, const Arguments&... arguments) {
    if (tiles == 0) return;
    launch<kernel>(dim3(unsigned(tiles), unsigned(heads), unsigned(std::max(1, (D + width - 1) / width))), tile_threads,
                   shared_bytes, arguments...);
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Shared by the attention kernels: their arguments, the tables of a graph on the GPU, and the visibility within a pair
// of tiles. A block has 128 threads and computes one tile of one head. A head wider than 128 columns is cut into chunks
// of 128 columns, and each block computes one chunk of the results.
#pragma once
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/ops/cuda/attention_tiles.cuh"
#include "engine/ops/cuda/device_memory.cuh"
#include "engine/ops/cuda/tile_product.cuh"

namespace masquerade::DEVICE {

constexpr int query_tile = 32;
constexpr int key_tile(int width) { return width == 128 ? 32 : 64; }  // key rows of a tile with `width` columns

// A TilePlan and its graph, in GPU memory.
struct Tables {
    SegmentTables graph;
    const QueryTile* query_tiles;
    const KeyTile* key_tiles;
    const Visit* visits;
    const int *by_key, *seen_before;
    int query_tile_count, key_tile_count;
};

// The arguments of an attention kernel. q (Nq,H D), kv[s] (Nk,2 G D); see AttentionHeads.
template <class S>
struct AttentionInput {
    Tables tables;
    const S *q, *kv[4];
    AttentionHeads heads;
    float scale;                     // 1 / sqrt(D)
    const int *document, *position;  // names of the query rows, for dropout
    Stream stream;
    std::uint32_t threshold;  // attention_threshold(); 0: no dropout
    float kept;               // factor of the probabilities that dropout keeps: 1 / (1 - rate)

    // Returns kv[s]. With a computed index, the compiler would copy the array into local memory.
    __device__ const S* source(int s) const { return s == 0 ? kv[0] : s == 1 ? kv[1] : s == 2 ? kv[2] : kv[3]; }
};

// to(i, j) = from[i * stride + j] for i < rows and j < columns. The other elements that products read (see filled())
// become 0.
template <class S, int M, int N>
__device__ void load_tile(Tile<S, M, N>& to, const S* from, std::int64_t stride, int rows, int columns) {
    const int height = filled(rows, M), width = filled(columns, N);
    for (int n = int(threadIdx.x); n < height * width; n += tile_threads) {
        const int i = width == 16 ? n / 16 : n / N, j = width == 16 ? n % 16 : n % N;
        to(i, j) = i < rows && j < columns ? from[i * stride + j] : S(0.0f);
    }
}

// The visibility of a tile of keys for query row i of a visit: whether the row sees each key, and the dropout factor of
// the key's probability. A lane has the keys lane, lane + 32, ... of the tile. All lanes of a warp must pass the same
// i, because they count the seen keys together.
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

// Keeps the tables of the last 8 graphs on the GPU: the layers of a model use the same graph one after another, and
// their backward uses the graph again. An entry is found by comparing the whole content of the graph, so that a caller
// may change a graph without notice.
//
// Nothing here waits for the GPU or reads from it. A step that is captured as a CUDA graph sends the tables of each of
// its masks once. It never uses tables that an earlier step has sent, so that all steps of one bucket have the same
// nodes.
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
        kept.name.clear();  // if sending throws, no call finds this entry
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

    // Sends all tables to the GPU in one piece, one after another, each padded to a multiple of 16 bytes.
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

// Not thread-safe: all work goes to one stream, and only one thread calls ops on it.
inline TableKeeper tables_of_graphs;

// Calls f with the width of a chunk for heads of D columns, as an integral constant.
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

// Launches the kernel with one block for every tile, head and chunk of columns.
template <auto kernel, class... Arguments>
void launch_tiles(int tiles, int heads, int D, int width, std::size_t shared_bytes, const Arguments&... arguments) {
    if (tiles == 0) return;
    launch<kernel>(dim3(unsigned(tiles), unsigned(heads), unsigned(std::max(1, (D + width - 1) / width))), tile_threads,
                   shared_bytes, arguments...);
}

}  // namespace masquerade::DEVICE

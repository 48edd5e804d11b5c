// SPDX-License-Identifier: MIT
// Cuts the query rows and key rows of an attention mask (a SegmentGraph) into tiles, on the host. A query tile visits a
// key tile if at least one of its rows sees at least one of the keys. The plan lists all visits, once sorted by query
// tile and once by key tile. A visit also says which keys each row sees: either all keys, or one bit for each key.
// Pairs of tiles that are not listed are never computed, and kernels need nothing else of the mask.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/cuda/kernel.cuh"
#include "engine/ops/visible.h"

namespace masquerade::DEVICE {

// Rows [row, row + rows) of the queries or of key/value tensor number `source`. A visit is a pair of a query tile and a
// key tile that attend to each other. The visits of a query tile are the entries [first, last) of TilePlan::visits. The
// visits of a key tile are the entries [first, last) of TilePlan::visits_by_key. Query rows that belong to no segment
// have tiles without visits. Every row of every key/value tensor belongs to exactly one key tile.
struct alignas(16) AttentionTile {
    int row, rows_and_source, first, last;
    HD int rows() const { return rows_and_source & 0xffff; }
    HD int source() const { return rows_and_source >> 16; }
};
// One visit, that is, a pair of a query tile and a key tile that attend to each other. An entry of TilePlan::visits is
// in the list of its query tile, and `row`, rows() and source() describe the key tile. An entry of
// TilePlan::visits_by_key is in the list of its key tile, and `row` and rows() describe the query tile. If several
// overlapping key segments contain the key tile, the same pair may have one visit for each of these segments.
struct alignas(16) Visit {
    int row, rows_and_source;
    int channel;  // channel of the key tile's first key, which selects the random bits of dropout (AttentionDropout)
    int mask;     // index in TilePlan::seen of the bits of the first query row; -1: every query row sees every key
    HD int rows() const { return rows_and_source & 0xffff; }
    HD int source() const { return rows_and_source >> 16; }
};

struct TilePlan {
    std::vector<AttentionTile> query_tiles, key_tiles;
    std::vector<Visit> visits;         // sorted by query tile; within a query tile, in the order of computation
    std::vector<Visit> visits_by_key;  // sorted by key tile; within a key tile, in the order of the query tiles
    // A visit is a pair of a query tile and a key tile. If some query row of a visit does not see all keys of the key
    // tile, `seen` has one word for each query row of the visit. Bit j of the word is set if the row sees key j of the
    // key tile.
    std::vector<std::uint64_t> seen;
};

struct TilePlanner {
    const SegmentGraph& graph;
    const int queries_a_tile, keys_a_tile;
    TilePlan plan;
    std::vector<int> tile_of[4];     // tile_of[s][row]: the key tile that contains this row of key/value tensor s
    std::vector<int> key_tile_of;    // for each visit (pair of a query tile and a key tile): the key tile
    std::vector<int> query_tile_of;  // for each visit (pair of a query tile and a key tile): the query tile
    // seen_in_tile[t * queries_a_tile + i] has a bit for each key of key tile t; it is set if row i of the current
    // query tile sees the key.
    std::vector<std::uint64_t> seen_in_tile;
    std::vector<int> touched;      // the key tiles of which some row of the current query tile sees a key
    std::vector<char> is_touched;  // for each key tile, whether it is in `touched`

    TilePlanner(const SegmentGraph& g, int queries, int keys) : graph(g), queries_a_tile(queries), keys_a_tile(keys) {}

    // Cuts the rows of key/value tensor number `source` into tiles. Tiles also end where a key segment begins or
    // ends, so that each tile lies either wholly inside or wholly outside a segment.
    void cut_keys(int source, int rows) {
        std::vector<int> cuts = {0};
        for (const KeySegment& key : graph.keys)
            if (key.source == source) cuts.insert(cuts.end(), {key.begin, key.end});
        cuts.push_back(rows);
        if (!std::is_sorted(cuts.begin(), cuts.end())) std::sort(cuts.begin(), cuts.end());
        tile_of[source].resize(rows);
        for (std::size_t c = 1; c < cuts.size(); c++)
            for (int row = cuts[c - 1]; row < cuts[c]; row += keys_a_tile) {
                const int count = std::min(keys_a_tile, cuts[c] - row);
                std::fill_n(tile_of[source].begin() + row, count, int(plan.key_tiles.size()));
                plan.key_tiles.push_back({row, count | source << 16, 0, 0});
            }
    }

    std::uint64_t* seen_of(int key_tile) { return &seen_in_tile[std::size_t(key_tile) * std::size_t(queries_a_tile)]; }

    // `seen`: the words of seen_in_tile of the key tile; null if every row sees every key.
    void visit(int key_tile, int first_channel, const std::uint64_t* seen) {
        const AttentionTile &queries = plan.query_tiles.back(), &keys = plan.key_tiles[key_tile];
        const std::uint64_t all = ~std::uint64_t(0) >> (64 - keys.rows());
        const bool whole =
            !seen || std::all_of(seen, seen + queries.rows(), [all](std::uint64_t bits) { return bits == all; });
        plan.visits.push_back({keys.row, keys.rows_and_source, first_channel, whole ? -1 : int(plan.seen.size())});
        if (!whole) plan.seen.insert(plan.seen.end(), seen, seen + queries.rows());
        key_tile_of.push_back(key_tile);
        query_tile_of.push_back(int(plan.query_tiles.size()) - 1);
    }

    void add_queries(int row, int rows, int segment) {
        const int first = int(plan.visits.size());
        plan.query_tiles.push_back({row, rows, first, first});
        if (segment < 0) return;
        const QuerySegment& q = graph.queries[segment];
        // The channel of the first key of key segment k. The channel of a key selects its random bits of dropout
        // (AttentionDropout). The channels of a key segment begin at a multiple of 8.
        int first_channel = 0;
        for (int v = q.sees_begin; v < q.sees_end; v++) {
            const int k = graph.sees[v];
            const KeySegment& key = graph.keys[k];
            if (key.begin == key.end) continue;
            const std::vector<int>& tiles = tile_of[key.source];
            const int begin = tiles[key.begin], end = tiles[key.end - 1] + 1;
            const auto channel_of = [&](int t) { return first_channel + plan.key_tiles[t].row - key.begin; };
            const bool whole = sees_whole(q, k);
            if (!whole) {
                seen_in_tile.resize(plan.key_tiles.size() * std::size_t(queries_a_tile));
                is_touched.resize(plan.key_tiles.size());
                for (int i = 0; i < rows; i++)
                    each_run(graph, q, row + i, k, [&](int from, int to) {
                        while (from < to) {
                            const int t = tiles[from];
                            const AttentionTile& tile = plan.key_tiles[t];
                            const int stop = std::min(to, tile.row + tile.rows());
                            if (!std::exchange(is_touched[t], 1)) touched.push_back(t);
                            seen_of(t)[i] |= ~std::uint64_t(0) >> (64 - (stop - from)) << (from - tile.row);
                            from = stop;
                        }
                    });
            }
            for (int t = begin; whole && t < end; t++) visit(t, channel_of(t), nullptr);
            std::sort(touched.begin(), touched.end());
            for (int t : touched) {
                visit(t, channel_of(t), seen_of(t));
                std::fill_n(seen_of(t), rows, 0);
                is_touched[t] = 0;
            }
            touched.clear();
            first_channel += AttentionDropout::channels_of(key);
        }
        plan.query_tiles.back().last = int(plan.visits.size());
    }

    void list_by_key() {
        plan.visits_by_key.resize(plan.visits.size());
        for (int t : key_tile_of) plan.key_tiles[t].last++;
        int next = 0;
        for (AttentionTile& tile : plan.key_tiles) {
            tile.first = next;
            next += tile.last;
            tile.last = tile.first;
        }
        for (std::size_t v = 0; v < plan.visits.size(); v++) {
            const AttentionTile& queries = plan.query_tiles[query_tile_of[v]];
            Visit& visit = plan.visits_by_key[plan.key_tiles[key_tile_of[v]].last++] = plan.visits[v];
            visit.row = queries.row, visit.rows_and_source = queries.rows_and_source;
        }
    }
};

// Returns a plan with tiles of at most `queries` query rows and at most `keys` key rows. `keys` must not exceed 64, the
// number of bits of a word of TilePlan::seen. covered[n] must be 1 if a query segment contains query row n, else 0.
inline TilePlan plan_tiles(const SegmentGraph& graph, const Views& kv, const std::vector<char>& covered, int queries,
                           int keys) {
    TilePlanner planner(graph, queries, keys);
    for (int s = 0; s < kv.count; s++) planner.cut_keys(s, int(kv[s].rows()));
    for (std::size_t s = 0; s < graph.queries.size(); s++)
        for (int row = graph.queries[s].begin; row < graph.queries[s].end; row += queries)
            planner.add_queries(row, std::min(queries, graph.queries[s].end - row), int(s));
    const int rows = int(covered.size());
    for (int row = 0, end; row < rows; row = end + 1) {
        for (end = row; end < rows && !covered[end]; end++) {
        }
        for (; row < end; row += queries) planner.add_queries(row, std::min(queries, end - row), -1);
    }
    planner.list_by_key();
    return std::move(planner.plan);
}

}  // namespace masquerade::DEVICE

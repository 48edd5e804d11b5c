// SPDX-License-Identifier: MIT
// Cuts the query rows and key rows of an attention mask (a SegmentGraph) into tiles, on the host. A query tile visits a
// key tile if at least one of its rows sees at least one of the keys. The plan lists all visits, once sorted by query
// tile and once by key tile. Pairs of tiles that are not listed are never computed.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/cuda/kernel.cuh"
#include "engine/ops/visible.h"

namespace masquerade::DEVICE {

// Query rows [row, row + rows) of query segment `segment`. Entries [first, last) of TilePlan::visits list the key
// tiles that this tile visits. If the rows belong to no segment, `segment` is -1 and there are no visits.
struct QueryTile {
    int row, rows, segment, first, last;
};
// Key rows [row, row + rows) of key/value tensor number `source`. Entries [first, last) of TilePlan::by_key list the
// visits to this tile. Every row of every key/value tensor belongs to exactly one key tile.
struct KeyTile {
    int source, row, rows, first, last;
};
// A query tile and a key tile in which some query sees some key. Key segments may overlap: if several of them contain
// the key tile, there may be a visit for each of these segments.
struct Visit {
    int query_tile, key_tile, key_segment;
    int whole;  // 1: every query row sees every key; 0: the kernel must call visible() for each pair of rows
};

// The tables of a SegmentGraph that kernels read. SegmentGraph::sees is not among them, because kernels read the visits
// of a TilePlan instead.
struct SegmentTables {
    const KeySegment* keys = nullptr;
    const QuerySegment* queries = nullptr;
    const int *query_rank = nullptr, *key_rank = nullptr;
    const std::uint32_t* bits = nullptr;
};

struct TilePlan {
    std::vector<QueryTile> query_tiles;
    std::vector<KeyTile> key_tiles;
    // Pairs of tiles to compute, sorted by query tile; within a query tile, in visiting order.
    std::vector<Visit> visits;
    std::vector<int> by_key;  // indices into `visits`, sorted by key tile; within a key tile, ascending
    // For each visit and each row of its query tile, the number of keys that the row sees in earlier visits; shape
    // (visits, queries_a_tile). Filled only for dropout.
    std::vector<int> seen_before;
};

struct TilePlanner {
    const SegmentGraph& graph;
    const SegmentTables view;
    const int queries_a_tile, keys_a_tile;
    const bool counts;  // whether to fill TilePlan::seen_before, for dropout
    TilePlan plan;
    std::vector<int> tile_of[4];                  // [source][key row]: the key tile that contains the row
    std::vector<std::vector<int> > seen_in_tile;  // [key tile][query row]: number of visible keys; empty if all are 0
    std::vector<int> touched;                     // the key tiles whose seen_in_tile is not empty

    TilePlanner(const SegmentGraph& g, int queries, int keys, bool counting)
        : graph(g),
          view{g.keys.data(), g.queries.data(), g.query_rank.data(), g.key_rank.data(), g.bits.data()},
          queries_a_tile(queries),
          keys_a_tile(keys),
          counts(counting) {}

    // Cuts the rows of key/value tensor number `source` into tiles. Tiles also end where a key segment begins or
    // ends, so that each tile lies either wholly inside or wholly outside a segment.
    void cut_keys(int source, int rows) {
        std::vector<int> cuts = {0, rows};
        for (const KeySegment& key : graph.keys)
            if (key.source == source) cuts.insert(cuts.end(), {key.begin, key.end});
        std::sort(cuts.begin(), cuts.end());
        tile_of[source].resize(rows);
        for (std::size_t c = 1; c < cuts.size(); c++)
            for (int row = cuts[c - 1]; row < cuts[c]; row += keys_a_tile) {
                const int count = std::min(keys_a_tile, cuts[c] - row);
                std::fill_n(tile_of[source].begin() + row, count, int(plan.key_tiles.size()));
                plan.key_tiles.push_back({source, row, count, 0, 0});
            }
    }

    void visit(int query_tile, int key_tile, int key_segment, const int* seen, std::vector<int>& seen_so_far) {
        const int rows = plan.query_tiles[query_tile].rows, keys = plan.key_tiles[key_tile].rows;
        int all = 0;
        for (int i = 0; i < rows; i++) all += seen ? seen[i] : keys;
        if (all == 0) return;
        plan.visits.push_back({query_tile, key_tile, key_segment, all == rows * keys});
        if (!counts) return;
        plan.seen_before.insert(plan.seen_before.end(), seen_so_far.begin(), seen_so_far.end());
        for (int i = 0; i < rows; i++) seen_so_far[i] += seen ? seen[i] : keys;
    }

    void add_queries(int row, int rows, int segment) {
        const int index = int(plan.query_tiles.size()), first = int(plan.visits.size());
        plan.query_tiles.push_back({row, rows, segment, first, first});
        if (segment < 0) return;
        const QuerySegment& q = graph.queries[segment];
        std::vector<int> seen_so_far(queries_a_tile, 0);
        for (int v = q.sees_begin; v < q.sees_end; v++) {
            const int k = graph.sees[v];
            const KeySegment& key = graph.keys[k];
            if (key.begin == key.end) continue;
            const std::vector<int>& tiles = tile_of[key.source];
            const int begin = tiles[key.begin], end = tiles[key.end - 1] + 1;
            const bool whole = sees_whole(q, k);
            if (!whole) {
                seen_in_tile.resize(plan.key_tiles.size());
                for (int i = 0; i < rows; i++)
                    each_run(view, q, row + i, k, [&](int from, int to) {
                        while (from < to) {
                            const int t = tiles[from];
                            const KeyTile& tile = plan.key_tiles[t];
                            const int stop = std::min(to, tile.row + tile.rows);
                            std::vector<int>& seen = seen_in_tile[t];
                            if (seen.empty()) seen.assign(rows, 0), touched.push_back(t);
                            seen[i] += stop - from;
                            from = stop;
                        }
                    });
            }
            for (int t = begin; whole && t < end; t++) visit(index, t, k, nullptr, seen_so_far);
            std::sort(touched.begin(), touched.end());
            for (int t : touched) {
                visit(index, t, k, seen_in_tile[t].data(), seen_so_far);
                seen_in_tile[t].clear();
            }
            touched.clear();
        }
        plan.query_tiles.back().last = int(plan.visits.size());
    }

    void list_by_key() {
        plan.by_key.resize(plan.visits.size());
        for (const Visit& v : plan.visits) plan.key_tiles[v.key_tile].last++;
        int next = 0;
        for (KeyTile& tile : plan.key_tiles) {
            tile.first = next;
            next += tile.last;
            tile.last = tile.first;
        }
        for (std::size_t v = 0; v < plan.visits.size(); v++)
            plan.by_key[plan.key_tiles[plan.visits[v].key_tile].last++] = int(v);
    }
};

// Returns a plan with tiles of at most `queries` query rows and `keys` key rows. covered[n] must be 1 if a query
// segment contains query row n, else 0. If `counts` is set, TilePlan::seen_before is filled.
inline TilePlan plan_tiles(const SegmentGraph& graph, const Views& kv, const std::vector<char>& covered, int queries,
                           int keys, bool counts) {
    TilePlanner planner(graph, queries, keys, counts);
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

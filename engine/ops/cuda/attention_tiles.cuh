// SPDX-License-Identifier: MIT
// Cuts a segment graph into tiles, on the host. Lists the key tiles that each query tile visits, and the query tiles
// that visit each key tile. A pair of tiles in which nothing is visible is not listed and never computed.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/cuda/kernel.cuh"
#include "engine/ops/visible.h"

namespace masquerade::DEVICE {

// Query rows [row, row + rows) of one query segment. Entries [first, last) of TilePlan::visits are the visits of the
// tile. If the rows belong to no segment, `segment` is -1 and there are no visits.
struct QueryTile {
    int row, rows, segment, first, last;
};
// Key rows [row, row + rows) of a source. Entries [first, last) of TilePlan::by_key list the visits to the tile. Every
// row of every source belongs to exactly one tile.
struct KeyTile {
    int source, row, rows, first, last;
};
// A pair of tiles in which some query sees some key. If several key segments contain the key tile, there may be a visit
// for each of them.
struct Visit {
    int query_tile, key_tile, key_segment;
    int whole;  // 1: every row sees every key; 0: the kernel must call visible()
};

// The tables of a SegmentGraph that kernels read. `sees` is missing, because kernels read the visits instead.
struct SegmentTables {
    const KeySegment* keys = nullptr;
    const QuerySegment* queries = nullptr;
    const int *query_rank = nullptr, *key_rank = nullptr;
    const std::uint32_t* bits = nullptr;
};

struct TilePlan {
    std::vector<QueryTile> query_tiles;
    std::vector<KeyTile> key_tiles;
    std::vector<Visit> visits;  // sorted by query tile, in visiting order
    std::vector<int> by_key;    // indices into `visits`: sorted by key tile, then ascending
    // For dropout, (visits, queries_a_tile): for each query row of a visit, the number of keys seen in earlier visits.
    std::vector<int> seen_before;
};

struct TilePlanner {
    const SegmentGraph& graph;
    const SegmentTables view;
    const int queries_a_tile, keys_a_tile;
    const bool counts;  // whether to fill seen_before
    TilePlan plan;
    std::vector<int> tile_of[4];                  // the key tile of each row of a source
    std::vector<std::vector<int> > seen_in_tile;  // for each key tile and query row: number of keys seen; empty: none
    std::vector<int> touched;                     // the key tiles whose seen_in_tile is not empty

    TilePlanner(const SegmentGraph& g, int queries, int keys, bool counting)
        : graph(g),
          view{g.keys.data(), g.queries.data(), g.query_rank.data(), g.key_rank.data(), g.bits.data()},
          queries_a_tile(queries),
          keys_a_tile(keys),
          counts(counting) {}

    // Cuts the rows of a source into tiles, also at the begin and the end of every key segment, so that a tile is
    // either inside or outside a segment.
    void cut_keys(int source, int rows) {
        std::vector<int> cuts = {0, rows};
        for (const KeySegment& key : graph.keys)
            if (key.source == source) cuts.insert(cuts.end(), {key.begin, key.end});
        std::sort(cuts.begin(), cuts.end());
        tile_of[source].resize(std::size_t(rows));
        for (std::size_t c = 1; c < cuts.size(); c++)
            for (int row = cuts[c - 1]; row < cuts[c]; row += keys_a_tile) {
                const int count = std::min(keys_a_tile, cuts[c] - row);
                std::fill_n(tile_of[source].begin() + row, count, int(plan.key_tiles.size()));
                plan.key_tiles.push_back({source, row, count, 0, 0});
            }
    }

    void visit(int query_tile, int key_tile, int key_segment, const int* seen, std::vector<int>& seen_so_far) {
        const int rows = plan.query_tiles[std::size_t(query_tile)].rows,
                  keys = plan.key_tiles[std::size_t(key_tile)].rows;
        int all = 0;
        for (int i = 0; i < rows; i++) all += seen ? seen[i] : keys;
        if (all == 0) return;
        plan.visits.push_back({query_tile, key_tile, key_segment, all == rows * keys});
        if (!counts) return;
        plan.seen_before.insert(plan.seen_before.end(), seen_so_far.begin(), seen_so_far.end());
        for (int i = 0; i < rows; i++) seen_so_far[std::size_t(i)] += seen ? seen[i] : keys;
    }

    void add_queries(int row, int rows, int segment) {
        const int index = int(plan.query_tiles.size()), first = int(plan.visits.size());
        plan.query_tiles.push_back({row, rows, segment, first, first});
        if (segment < 0) return;
        const QuerySegment& q = graph.queries[std::size_t(segment)];
        std::vector<int> seen_so_far(std::size_t(queries_a_tile), 0);
        for (int v = q.sees_begin; v < q.sees_end; v++) {
            const int k = graph.sees[std::size_t(v)];
            const KeySegment& key = graph.keys[std::size_t(k)];
            if (key.begin == key.end) continue;
            const std::vector<int>& tiles = tile_of[key.source];
            const int begin = tiles[std::size_t(key.begin)], end = tiles[std::size_t(key.end) - 1] + 1;
            const bool whole = sees_whole(q, k);
            if (!whole) {
                seen_in_tile.resize(plan.key_tiles.size());
                for (int i = 0; i < rows; i++)
                    each_run(view, q, row + i, k, [&](int from, int to) {
                        while (from < to) {
                            const int t = tiles[std::size_t(from)];
                            const KeyTile& tile = plan.key_tiles[std::size_t(t)];
                            const int stop = std::min(to, tile.row + tile.rows);
                            std::vector<int>& seen = seen_in_tile[std::size_t(t)];
                            if (seen.empty()) seen.assign(std::size_t(rows), 0), touched.push_back(t);
                            seen[std::size_t(i)] += stop - from;
                            from = stop;
                        }
                    });
            }
            for (int t = begin; whole && t < end; t++) visit(index, t, k, nullptr, seen_so_far);
            std::sort(touched.begin(), touched.end());
            for (int t : touched) {
                visit(index, t, k, seen_in_tile[std::size_t(t)].data(), seen_so_far);
                seen_in_tile[std::size_t(t)].clear();
            }
            touched.clear();
        }
        plan.query_tiles.back().last = int(plan.visits.size());
    }

    void list_by_key() {
        plan.by_key.resize(plan.visits.size());
        for (const Visit& v : plan.visits) plan.key_tiles[std::size_t(v.key_tile)].last++;
        int next = 0;
        for (KeyTile& tile : plan.key_tiles) {
            tile.first = next;
            next += tile.last;
            tile.last = tile.first;
        }
        for (std::size_t v = 0; v < plan.visits.size(); v++)
            plan.by_key[std::size_t(plan.key_tiles[std::size_t(plan.visits[v].key_tile)].last++)] = int(v);
    }
};

// Returns a plan with tiles of at most `queries` query rows and `keys` key rows. covered[n]: whether a segment contains
// query row n. `counts`: whether to fill seen_before.
inline TilePlan plan_tiles(const SegmentGraph& graph, const Views& kv, const std::vector<char>& covered, int queries,
                           int keys, bool counts) {
    TilePlanner planner(graph, queries, keys, counts);
    for (int s = 0; s < kv.count; s++) planner.cut_keys(s, int(kv[s].rows()));
    for (std::size_t s = 0; s < graph.queries.size(); s++)
        for (int row = graph.queries[s].begin; row < graph.queries[s].end; row += queries)
            planner.add_queries(row, std::min(queries, graph.queries[s].end - row), int(s));
    const int rows = int(covered.size());
    for (int row = 0, end; row < rows; row = end + 1) {
        for (end = row; end < rows && !covered[std::size_t(end)]; end++) {
        }
        for (; row < end; row += queries) planner.add_queries(row, std::min(queries, end - row), -1);
    }
    planner.list_by_key();
    return std::move(planner.plan);
}

}  // namespace masquerade::DEVICE

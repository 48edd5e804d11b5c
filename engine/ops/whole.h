// SPDX-License-Identifier: MIT
// The masks that sinkhorn accepts. It sorts blocks by content, so all rows of a segment must see each other and nothing
// else.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/ops/check.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"

namespace masquerade {

// Returns the reason, as a message for the user, why sinkhorn cannot compute this mask. Returns an empty string if it
// can.
inline std::string whole_refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries) {
        const auto sees = graph.sees.begin();
        const bool itself =
            std::find(sees + q.sees_begin, sees + q.sees_end, q.self) != sees + q.sees_end && q.rule != Rule::none;
        if (itself && (q.rule != Rule::full || has_pattern(q)))
            return "which keys a row sees depends on all rows of its segment, the future and whatever the mask hides";
        if (!itself || q.sees_end - q.sees_begin > 1)
            return "it needs one tensor for queries and keys: rows that see each other and no others";
    }
    return "";
}

// The tables of a graph, as kernels read them. A segment is cut into blocks of `block` rows; its last block may have
// fewer.
struct WholePlan {
    int segments, rows, queries, blocks, most;  // `blocks`: an upper bound; `most`: blocks of the largest segment
    int block;                                  // rows of a block
    const int *begin, *end;                     // (segments) the rows [begin, end) of the segment
    const int* first_block;  // (segments + 1) first block of the segment; last: number of used blocks
    const int* segment_of;   // (blocks) segment of the block; -1 if the block is unused
    const int* segment;      // (rows) segment of the row; -1 if it is in no segment
    const int* query;        // (rows) row of y that is computed for this input row, or -1
    const int* row;          // (queries) input row for which this row of y is computed, or -1
    HD int blocks_of(int s) const { return first_block[s + 1] - first_block[s]; }
    HD int first_row(int u) const { return begin[segment_of[u]] + (u - first_block[segment_of[u]]) * block; }
    HD int rows_of(int u) const {
        const int left = end[segment_of[u]] - first_row(u);
        return left < block ? left : block;
    }
};

inline std::int64_t whole_blocks(const SegmentGraph& graph, std::int64_t rows, int block) {
    return rows / block + std::int64_t(graph.keys.size());
}

// Returns a plan as numbers: six counts, then the tables. y has `queries` rows; a row of y is computed for one of the
// `rows` input rows, or for none.
inline std::vector<int> whole_plan_numbers(const char* op, const SegmentGraph& graph, std::int64_t rows,
                                           std::int64_t queries, int block) {
    if (const std::string why = whole_refuses(graph); !why.empty()) throw Error(text(op, ": ", why));
    std::vector<int> begin, end, first_block = {0}, segment_of, segment(std::size_t(rows), -1),
                                 query(std::size_t(rows), -1), row(std::size_t(queries), -1);
    std::vector<char> known(graph.keys.size(), 0);
    int most = 0;
    for (const QuerySegment& q : graph.queries) {
        const KeySegment& key = graph.keys.at(std::size_t(q.self));
        if (key.source != 0 || key.begin < 0 || key.end > rows || q.begin < 0 || q.end > queries || q.offset < 0 ||
            q.offset + q.end - q.begin > key.end - key.begin || key.end - key.begin >= 1 << 20)
            throw Error(text(op, ": query rows ", q.begin, " to ", q.end, " of ", queries, " at place ", q.offset,
                             " of rows ", key.begin, " to ", key.end, " of source ", key.source, ", which has ", rows,
                             "; expected places within, fewer than 2^20"));
        if (!known[std::size_t(q.self)] && key.begin < key.end) {
            const int s = int(begin.size()), blocks = (key.end - key.begin + block - 1) / block;
            for (int r = key.begin; r < key.end; r++) {
                if (segment[std::size_t(r)] >= 0) throw Error(text(op, ": two segments hold row ", r));
                segment[std::size_t(r)] = s;
            }
            begin.push_back(key.begin), end.push_back(key.end);
            segment_of.insert(segment_of.end(), std::size_t(blocks), s);
            first_block.push_back(int(segment_of.size()));
            most = std::max(most, blocks);
        }
        known[std::size_t(q.self)] = 1;
        for (int i = q.begin; i < q.end; i++) {
            const int r = key.begin + q.offset + i - q.begin;
            if (row[std::size_t(i)] >= 0 || query[std::size_t(r)] >= 0)
                throw Error(text(op, ": two segments ask for row ", r));
            row[std::size_t(i)] = r, query[std::size_t(r)] = i;
        }
    }
    segment_of.resize(std::size_t(whole_blocks(graph, rows, block)), -1);
    std::vector<int> all = {int(begin.size()), int(rows), int(queries), int(segment_of.size()), most, block};
    for (const auto* part : {&begin, &end, &first_block, &segment_of, &segment, &query, &row})
        all.insert(all.end(), part->begin(), part->end());
    return all;
}

// Returns the WholePlan of the numbers n that whole_plan_numbers() has returned. `at` is the address at which kernels
// can read the same numbers.
inline WholePlan whole_plan(const std::vector<int>& n, const int* at) {
    at += 6;
    const auto next = [&](int count) { return (at += count) - count; };
    WholePlan p{n[0], n[1], n[2], n[3], n[4], n[5], {}, {}, {}, {}, {}, {}, {}};
    p.begin = next(n[0]), p.end = next(n[0]), p.first_block = next(n[0] + 1), p.segment_of = next(n[3]);
    p.segment = next(n[1]), p.query = next(n[1]), p.row = next(n[2]);
    return p;
}

}  // namespace masquerade

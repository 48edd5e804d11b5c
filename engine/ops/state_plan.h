// SPDX-License-Identifier: MIT
// The order in which a bounded state meets the keys and the queries of a segment graph. Query segments of a document that
// see the same keys are a group: keys in an order, and queries that each read the state after so many of them.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/ops/check.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"

namespace masquerade {

// The tables of a plan, as kernels read them. No key belongs to two documents, so that each may run alone.
struct StatePlan {
    int documents, queries;
    const int* first_group;  // (documents + 1) groups of a document
    const int* first_query;  // (groups + 1)
    const int* first_key;    // (groups + 1)
    const int* query_row;    // (queries) row of x
    const int* query_keys;   // (queries) it sees the first so many keys of its group
    const int* key_source;   // (keys)
    const int* key_row;      // (keys) row of that source
};

// Why a bounded state cannot honour the mask; empty: it can.
inline std::string state_refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries) {
        if (has_pattern(q)) return "a state that only grows cannot let the keys behind a window go";
        if (q.rule == Rule::bits) return "its rows see keys in no common order, as a growing state needs";
    }
    return "";
}

namespace detail {
struct StateGroup {
    std::vector<int> source, row;               // of the keys, in order
    int whole = 0;                              // the first so many are seen by all queries
    std::vector<std::pair<int, int>> queries;  // keys that it sees, row
};

inline StateGroup keys_of_group(const SegmentGraph& g, const QuerySegment& q) {
    StateGroup group;
    std::vector<int> own;
    for (int i = q.sees_begin; i < q.sees_end; i++) {
        const KeySegment& k = g.keys[std::size_t(g.sees[std::size_t(i)])];
        if (g.sees[std::size_t(i)] == q.self) own.resize(q.rule == Rule::none ? 0 : std::size_t(k.end - k.begin));
        for (int row = k.begin; g.sees[std::size_t(i)] != q.self && row < k.end; row++)
            group.source.push_back(k.source), group.row.push_back(row);
    }
    group.whole = int(group.row.size());
    if (own.empty()) return group;
    const KeySegment& self = g.keys[std::size_t(q.self)];
    std::iota(own.begin(), own.end(), self.begin);
    if (q.rule == Rule::anticausal) std::reverse(own.begin(), own.end());
    if (q.rule == Rule::rank || q.rule == Rule::strict_rank)
        std::stable_sort(own.begin(), own.end(),
                         [&](int a, int b) { return g.key_rank[std::size_t(a)] < g.key_rank[std::size_t(b)]; });
    group.source.insert(group.source.end(), own.size(), self.source);
    group.row.insert(group.row.end(), own.begin(), own.end());
    return group;
}

// How many of the group's last keys, those of the segment itself, a row of q sees.
inline int own_keys_seen(const SegmentGraph& g, const StateGroup& group, const QuerySegment& q, int row) {
    const auto own = group.row.begin() + group.whole, end = group.row.end();
    const int count = int(end - own), place = q.offset + row - q.begin;
    const auto of_rank_below = [&](int rank) {
        return int(std::partition_point(own, end, [&](int k) { return g.key_rank[std::size_t(k)] < rank; }) - own);
    };
    switch (q.rule) {
        case Rule::full: return count;
        case Rule::causal: return std::min(place + 1, count);
        case Rule::strict_causal: return std::min(place, count);
        case Rule::anticausal: return std::max(count - place, 0);
        case Rule::rank: return count == 0 ? 0 : of_rank_below(g.query_rank[std::size_t(row)] + 1);
        case Rule::strict_rank: return count == 0 ? 0 : of_rank_below(g.query_rank[std::size_t(row)]);
        default: return 0;
    }
}

inline bool same_keys(const SegmentGraph& g, const QuerySegment& a, const QuerySegment& b) {
    return a.document == b.document && a.self == b.self && a.rule == b.rule &&
           std::equal(g.sees.begin() + a.sees_begin, g.sees.begin() + a.sees_end, g.sees.begin() + b.sees_begin,
                      g.sees.begin() + b.sees_end);
}
}  // namespace detail

// Counts of documents, groups, queries and keys, then the tables. Error: a mask that is refused; a key row of two
// documents, whose gradient would have two writers, where it is not `forward` alone.
inline std::vector<int> state_plan_numbers(const char* op, const SegmentGraph& graph, const Views& keys, bool forward) {
    if (const std::string why = state_refuses(graph); !why.empty()) throw Error(text(op, ": ", why));
    std::vector<int> first_group, first_query = {0}, first_key = {0}, query_row, query_keys, source, row;
    std::vector<std::vector<int>> owner;
    for (int s = 0; s < keys.count; s++) owner.emplace_back(std::size_t(keys[s].rows()), -1);
    for (std::size_t i = 0; i < graph.queries.size();) {
        const QuerySegment& q = graph.queries[i];
        while (int(first_group.size()) <= q.document) first_group.push_back(int(first_query.size()) - 1);
        detail::StateGroup group = detail::keys_of_group(graph, q);
        for (; i < graph.queries.size() && detail::same_keys(graph, q, graph.queries[i]); i++)
            for (int r = graph.queries[i].begin; r < graph.queries[i].end; r++)
                group.queries.push_back({group.whole + detail::own_keys_seen(graph, group, graph.queries[i], r), r});
        std::stable_sort(group.queries.begin(), group.queries.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [seen, r] : group.queries) query_row.push_back(r), query_keys.push_back(seen);
        for (std::size_t k = 0; k < group.row.size(); k++) {
            int& document = owner.at(std::size_t(group.source[k])).at(std::size_t(group.row[k]));
            if (!forward && document >= 0 && document != q.document)
                throw Error(text(op, ": documents ", document, " and ", q.document, " share key row ", group.row[k]));
            document = q.document;
        }
        source.insert(source.end(), group.source.begin(), group.source.end());
        row.insert(row.end(), group.row.begin(), group.row.end());
        first_query.push_back(int(query_row.size()));
        first_key.push_back(int(row.size()));
    }
    first_group.push_back(int(first_query.size()) - 1);
    std::vector<int> all = {int(first_group.size()) - 1, int(first_query.size()) - 1, int(query_row.size()), int(row.size())};
    for (const auto* part : {&first_group, &first_query, &first_key, &query_row, &query_keys, &source, &row})
        all.insert(all.end(), part->begin(), part->end());
    return all;
}

// The plan of such numbers, which kernels find at `at`.
inline StatePlan state_plan(const std::vector<int>& numbers, const int* at) {
    const int documents = numbers[0], groups = numbers[1], queries = numbers[2], keys = numbers[3];
    at += 4;
    const auto next = [&](int count) { return (at += count) - count; };
    StatePlan p{};
    p.documents = documents, p.queries = queries;
    p.first_group = next(documents + 1), p.first_query = next(groups + 1), p.first_key = next(groups + 1);
    p.query_row = next(queries), p.query_keys = next(queries);
    p.key_source = next(keys), p.key_row = next(keys);
    return p;
}

}  // namespace masquerade

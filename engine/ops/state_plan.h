// SPDX-License-Identifier: MIT
// The plan of state_attention: the order in which keys are added to a state of bounded size, and in which queries read
// this state. Adjacent query segments of a document form a group if they see the same key segments by the same rule. A
// group has a list of keys. Each query of the group sees the first n keys of this list; n may differ from query to
// query.
#pragma once
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/ops/check.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"

namespace masquerade {

// The tables of a plan, as kernels read them. A group is cut into pieces, that is, stretches of its keys and queries.
// Pieces run in parallel once the state before each piece is known. The groups of each document are numbered from 0.
// Wave w consists of group number w of every document that has such a group. Groups of one document may share keys, and
// their backwards then add to the same gradients. The backward therefore runs wave after wave. In the tables `key` and
// `query`, entry p + g is the beginning of piece p, which belongs to group g. After the last piece of a group follows
// one more entry, the end of the group.
struct StatePlan {
    int waves, groups, pieces, queries, keys;
    const int* first_group;  // wave w consists of the groups [first_group[w], first_group[w + 1])
    const int* document;     // for each group of queries: the index of its document
    const int* first_piece;  // for each group of queries: its first piece; one more entry: the number of all pieces
    const int* group;        // for each piece: its group of queries
    const int* key;          // for each piece: its first key; for the end of each group: one past the last key
    const int* query;        // for each piece: its first query; for the end of each group: one past the last query
    const int* query_row;    // for each query: its row in x
    const int* query_end;    // for each query: one past the last key of its group that the query sees
    const int* key_source;   // for each key: the index of the key/value tensor with the key
    const int* key_row;      // for each key: its row in the key/value tensor with the key
};

// Returns the reason, as a message for the user, why state_attention cannot compute this mask. Returns an empty string
// if state_attention can compute it.
inline std::string state_refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries) {
        if (has_pattern(q)) return "the mask has a window or a pattern, and a growing state cannot forget keys";
        if (q.rule == Rule::bits) return "its rows do not see keys in one common order, which a growing state needs";
    }
    return "";
}

namespace detail {
// Joins tables into one list of numbers: the length of each table, then the tables.
inline std::vector<int> joined(std::initializer_list<const std::vector<int>*> tables) {
    std::vector<int> all;
    for (const auto* table : tables) all.push_back(int(table->size()));
    for (const auto* table : tables) all.insert(all.end(), table->begin(), table->end());
    return all;
}
// Returns the addresses of the `count` tables that joined() has joined to `numbers`. `at` is the address at which
// kernels can read these numbers.
template <std::size_t count>
std::array<const int*, count> tables_in(const std::vector<int>& numbers, const int* at) {
    std::array<const int*, count> tables;
    at += count;
    for (std::size_t i = 0; i < count; i++) tables[i] = std::exchange(at, at + numbers[i]);
    return tables;
}

struct StateGroup {
    std::vector<int> source, row;  // for each key, in order: its source (key/value tensor), and its row there
    int whole = 0, document = 0;   // `whole`: the first `whole` keys are seen by all queries of the group
    std::vector<std::pair<int, int>> queries;  // for each query: the number of keys that it sees, and its row in x
};

inline StateGroup keys_of_group(const SegmentGraph& g, const QuerySegment& q) {
    StateGroup group;
    std::vector<int> own;
    for (int i = q.sees_begin; i < q.sees_end; i++) {
        const KeySegment& k = g.keys[g.sees[i]];
        if (g.sees[i] == q.self) own.resize(q.rule == Rule::none ? 0 : k.end - k.begin);
        for (int row = k.begin; g.sees[i] != q.self && row < k.end; row++)
            group.source.push_back(k.source), group.row.push_back(row);
    }
    group.whole = int(group.row.size());
    if (own.empty()) return group;
    const KeySegment& self = g.keys[q.self];
    std::iota(own.begin(), own.end(), self.begin);
    if (q.rule == Rule::anticausal) std::reverse(own.begin(), own.end());
    if (q.rule == Rule::rank || q.rule == Rule::strict_rank)
        std::stable_sort(own.begin(), own.end(), [&](int a, int b) { return g.key_rank[a] < g.key_rank[b]; });
    group.source.insert(group.source.end(), own.size(), self.source);
    group.row.insert(group.row.end(), own.begin(), own.end());
    return group;
}

// Returns the number of keys that query row `row` sees in its own segment. These keys come last in the list of the
// group, after the keys of all other segments.
inline int own_keys_seen(const SegmentGraph& g, const StateGroup& group, const QuerySegment& q, int row) {
    const auto own = group.row.begin() + group.whole, end = group.row.end();
    const int count = int(end - own), place = q.offset + row - q.begin;
    const auto of_rank_below = [&](int rank) {
        return int(std::partition_point(own, end, [&](int k) { return g.key_rank[k] < rank; }) - own);
    };
    switch (q.rule) {
        case Rule::full: return count;
        case Rule::causal: return std::min(place + 1, count);
        case Rule::strict_causal: return std::min(place, count);
        case Rule::anticausal: return std::max(count - place, 0);
        case Rule::rank: return count == 0 ? 0 : of_rank_below(g.query_rank[row] + 1);
        case Rule::strict_rank: return count == 0 ? 0 : of_rank_below(g.query_rank[row]);
        default: return 0;
    }
}

inline bool same_keys(const SegmentGraph& g, const QuerySegment& a, const QuerySegment& b) {
    return a.document == b.document && a.self == b.self && a.rule == b.rule &&
           std::equal(g.sees.begin() + a.sees_begin, g.sees.begin() + a.sees_end, g.sees.begin() + b.sees_begin,
                      g.sees.begin() + b.sees_end);
}
}  // namespace detail

// Returns the tables of a StatePlan as one list of numbers. state_plan() makes a StatePlan from this list. A piece has
// at most `piece` keys plus queries. Throws Error if state_refuses() returns a reason. For the backward (`forward` is
// false), also throws Error if two documents share a key row, because both documents would write the gradient of this
// row.
inline std::vector<int> state_plan_numbers(const char* op, const SegmentGraph& graph, const Views& keys, int piece,
                                           bool forward) {
    if (const std::string why = state_refuses(graph); !why.empty()) throw Error(op, ": ", why);
    std::vector<std::vector<int>> owner;
    for (int s = 0; s < keys.count; s++) owner.emplace_back(keys[s].rows(), -1);
    std::vector<std::vector<detail::StateGroup>> waves;
    std::vector<std::size_t> groups_of;  // number of groups of each document so far
    for (std::size_t i = 0; i < graph.queries.size();) {
        const QuerySegment& q = graph.queries[i];
        detail::StateGroup group = detail::keys_of_group(graph, q);
        for (; i < graph.queries.size() && detail::same_keys(graph, q, graph.queries[i]); i++)
            for (int r = graph.queries[i].begin; r < graph.queries[i].end; r++)
                group.queries.push_back({group.whole + detail::own_keys_seen(graph, group, graph.queries[i], r), r});
        std::stable_sort(group.queries.begin(), group.queries.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t k = 0; k < group.row.size(); k++) {
            int& document = owner.at(group.source[k]).at(group.row[k]);
            if (!forward && document >= 0 && document != q.document)
                throw Error(op, ": documents ", document, " and ", q.document, " share key row ", group.row[k]);
            document = q.document;
        }
        group.document = q.document;
        if (int(groups_of.size()) <= q.document) groups_of.resize(q.document + 1, 0);
        const std::size_t wave = groups_of[q.document]++;
        if (waves.size() <= wave) waves.resize(wave + 1);
        waves[wave].push_back(std::move(group));
    }
    std::vector<int> first_group = {0}, documents, first_piece = {0}, group_of, key, query, query_row, query_end,
                     source, row;
    for (const auto& wave : waves) {
        for (const detail::StateGroup& group : wave) {
            const int first = int(source.size()), number = int(documents.size());
            const auto begin_piece = [&](int seen) {
                key.push_back(first + seen), query.push_back(int(query_row.size())), group_of.push_back(number);
            };
            begin_piece(0);
            int seen = 0, events = 0;
            const auto count_event = [&] {
                if (events == piece) begin_piece(seen), events = 0;
                events++;
            };
            for (const auto& [sees, r] : group.queries) {
                for (; seen < sees; seen++) count_event();
                count_event();
                query_row.push_back(r), query_end.push_back(first + sees);
            }
            documents.push_back(group.document), first_piece.push_back(int(group_of.size()));
            key.push_back(first + seen), query.push_back(int(query_row.size()));
            source.insert(source.end(), group.source.begin(), group.source.end());
            row.insert(row.end(), group.row.begin(), group.row.end());
        }
        first_group.push_back(int(documents.size()));
    }
    return detail::joined(
        {&first_group, &documents, &first_piece, &group_of, &key, &query, &query_row, &query_end, &source, &row});
}

// Returns the StatePlan of the numbers that state_plan_numbers() has returned. `at` is the address at which kernels
// can read the same numbers.
inline StatePlan state_plan(const std::vector<int>& numbers, const int* at) {
    const auto [first_group, document, first_piece, group, key, query, query_row, query_end, key_source, key_row] =
        detail::tables_in<10>(numbers, at);
    const int waves = numbers[0] - 1, groups = numbers[1], pieces = numbers[3], queries = numbers[6], keys = numbers[8];
    return {waves, groups, pieces, queries,   keys,      first_group, document, first_piece,
            group, key,    query,  query_row, query_end, key_source,  key_row};
}

}  // namespace masquerade

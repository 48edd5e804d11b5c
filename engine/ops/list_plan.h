// SPDX-License-Identifier: MIT
// The plan of lsh_attention and, with blocks (block_plan.h), of sinkhorn. It says which rows are sorted together. As in
// state_plan.h, adjacent query segments of a document form a group if they see the same key segments by the same rule.
// A group has a list of keys. Each query row of the group sees the first n keys of this list; n may differ from row to
// row.
//
// A row's result may depend only on rows that it sees. Therefore the sorted order used for a row must not depend on
// later rows. If all rows of a group see the whole list, both ops sort as in their papers. Otherwise the sorting for a
// row uses only this row and the rows before it in the list. lsh_attention then counts chunks within each bucket: the
// chunk of a row follows from the number of earlier rows in the same bucket, and the row sees all these earlier rows.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/ops/state_plan.h"

namespace masquerade {

// The tables of a plan, as kernels read them. The lists of all groups are stored one after another. A key is an index
// in the resulting list of all keys.
struct ListPlan {
    int groups, rows, queries, keys;
    const int* first_key;  // for each group of queries: first key of the group's list; one more entry: number of keys
    const int* whole;      // for each group of queries: 1 if all its query rows see the whole list of the group, else 0
    const int* group;      // for each key: the group of queries in whose list the key is
    const int* row;        // for each key: the row of q, k and v that the key stands for
    // For each key: the row of y that is computed from the query in row[key] of q; -1 if the group of the key has no
    // query in this row.
    const int* query;
    // For each key: the query in row[key] of q sees the keys of the same group with an index below this number; 0 if
    // the group of the key has no query in this row.
    const int* sees;
    // For each row of y: the key that stands for the row of q from which this row of y is computed; -1 if no query
    // segment contains this row of y.
    const int* own;
    const int* first_of_row;  // for each row of q: index in `of_row` of its first key; one more entry: number of keys
    const int* of_row;        // all keys, sorted by row of q; a row that is in the lists of two groups has two keys
};

// Returns the reason, as a message for the user, why lsh_attention and sinkhorn cannot compute this mask. Returns an
// empty string if they can compute it.
inline std::string list_refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries) {
        if (q.begin == q.end) continue;
        if (q.self < 0) return "it sorts rows that are queries and keys, and these keys are other rows";
        if (has_pattern(q) || q.rule == Rule::bits)
            return "which keys a row finds would depend on rows that the mask hides from it";
        const auto sees = graph.sees.begin();
        if (q.rule == Rule::none || q.rule == Rule::strict_causal || q.rule == Rule::strict_rank ||
            std::find(sees + q.sees_begin, sees + q.sees_end, q.self) == sees + q.sees_end)
            return "a row that finds no other key takes its own, which this mask hides";
    }
    return "";
}

// Returns the tables of a ListPlan as one list of numbers. list_plan() makes a ListPlan from this list. y has `queries`
// rows, and q, k and v have `rows` rows.
inline std::vector<int> list_plan_numbers(const char* op, const SegmentGraph& graph, std::int64_t rows,
                                          std::int64_t queries) {
    if (const std::string why = list_refuses(graph); !why.empty()) throw Error(op, ": ", why);
    for (const KeySegment& key : graph.keys)
        if (key.source != 0 || key.begin < 0 || key.begin > key.end || key.end > rows)
            throw Error(op, ": a key segment is rows ", key.begin, " to ", key.end, " of source ", key.source,
                        "; expected rows of source 0, which has ", rows);
    std::vector<int> first_key = {0}, whole, group, row, query, sees, own(queries, -1), first_of_row(rows + 1, 0);
    std::vector<char> asks(rows, 0);
    for (std::size_t i = 0; i < graph.queries.size();) {
        const QuerySegment& first = graph.queries[i];
        if (first.begin == first.end) {
            i++;
            continue;
        }
        const KeySegment& self = graph.keys[first.self];
        detail::StateGroup keys = detail::keys_of_group(graph, first);
        // A reversed language model reads from right to left, and the keys of other segments (such as a memory) come
        // later in the text. The keys of the other segments are therefore reversed, too. The list then has the same
        // order as if the text and its memory were one segment.
        if (first.rule == Rule::anticausal) std::reverse(keys.row.begin(), keys.row.begin() + keys.whole);
        const int begin = first_key.back(), count = int(keys.row.size());
        std::vector<int> place(self.end - self.begin);  // for each row of `self`: its index in the list
        for (int k = keys.whole; k < count; k++) place[keys.row[k] - self.begin] = k;
        row.insert(row.end(), keys.row.begin(), keys.row.end());
        group.resize(row.size(), int(whole.size()));
        query.resize(row.size(), -1), sees.resize(row.size(), 0);
        for (; i < graph.queries.size() && detail::same_keys(graph, first, graph.queries[i]); i++) {
            const QuerySegment& q = graph.queries[i];
            if (q.begin < 0 || q.begin > q.end || q.end > queries || q.offset < 0 ||
                q.offset + q.end - q.begin > self.end - self.begin || count >= 1 << 20)
                throw Error(op, ": query rows ", q.begin, " to ", q.end, " of ", queries, " at place ", q.offset,
                            " of rows ", self.begin, " to ", self.end, ", with ", count,
                            " keys; expected places within, and fewer than 2^20 keys");
            for (int m = q.begin; m < q.end; m++) {
                const int n = q.offset + m - q.begin, key = begin + place[n];
                char& asked = asks[self.begin + n];
                if (asked || own[m] >= 0) throw Error(op, ": two segments ask for row ", self.begin + n);
                asked = 1, own[m] = key, query[key] = m;
                sees[key] = begin + keys.whole + detail::own_keys_seen(graph, keys, q, m);
            }
        }
        whole.push_back(first.rule == Rule::full);
        first_key.push_back(int(row.size()));
    }
    for (int r : row) first_of_row[r + 1]++;
    for (std::size_t r = 1; r < first_of_row.size(); r++) first_of_row[r] += first_of_row[r - 1];
    std::vector<int> of_row(row.size()), next = first_of_row;
    for (std::size_t k = 0; k < row.size(); k++) of_row[next[row[k]]++] = int(k);
    return detail::joined({&first_key, &whole, &group, &row, &query, &sees, &own, &first_of_row, &of_row});
}

// Returns the ListPlan of the numbers n that list_plan_numbers() has returned. `at` is the address at which kernels can
// read the same numbers.
inline ListPlan list_plan(const std::vector<int>& n, const int* at) {
    const auto [first_key, whole, group, row, query, sees, own, first_of_row, of_row] = detail::tables_in<9>(n, at);
    const int groups = n[1], rows = n[7] - 1, queries = n[6], keys = n[8];
    return {groups, rows, queries, keys, first_key, whole, group, row, query, sees, own, first_of_row, of_row};
}

}  // namespace masquerade

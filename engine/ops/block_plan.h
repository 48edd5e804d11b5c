// SPDX-License-Identifier: MIT
// The plan of the op sinkhorn. Query segments of a document form a group if they see the same key segments by the same
// mask rule. list_plan.h makes a list of keys for each group; this plan cuts each list into blocks.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/ops/list_plan.h"

namespace masquerade {

// The tables of a plan, as kernels read them. If the list of keys of a group has more than `block` keys, it is cut into
// blocks of `block` keys; the last block of a list may have fewer keys. A shorter list has no blocks, because there is
// nothing to mix. `blocks` is an upper bound of the number of blocks of all lists together (most_blocks()); the surplus
// blocks are unused. `most` is the number of blocks of the longest list.
struct BlockPlan : ListPlan {
    int block, blocks, most;
    // For each group of queries: the first block of its list of keys. One more entry: the number of used blocks.
    const int* first_block;
    const int* group_of;  // for each block: the group of queries it belongs to; -1 if the block is unused
    HD int blocks_of(int g) const { return first_block[g + 1] - first_block[g]; }
    HD int begin(int u) const { return first_key[group_of[u]] + (u - first_block[group_of[u]]) * block; }
    HD int keys_of(int u) const {
        const int left = first_key[group_of[u] + 1] - begin(u);
        return left < block ? left : block;
    }
    // Returns the row of the key tensor that contains key t of block v, where v = 0 is the first block of the list that
    // contains block u.
    HD int row_of(int u, int v, int t) const { return row[first_key[group_of[u]] + v * block + t]; }
    // The op replaces each block u by the sorted block u. Row t of sorted block u is a weighted mean of row t of the
    // blocks v < mixed(u, t) of the same list, where v = 0 is the first block of the list. There are two cases:
    //     whole[g]    All rows of the group see the whole list. The mean is over all blocks that have a row t. If the
    //                 last block of the list is shorter and has no row t, lacks(u, t) is true.
    //     otherwise   The mean is over the blocks before u, because every row of block u sees all keys of these blocks.
    HD bool lacks(int u, int t) const {
        const int g = group_of[u];
        return g >= 0 && whole[g] && t >= keys_of(first_block[g + 1] - 1);
    }
    HD int mixed(int u, int t) const {
        const int g = group_of[u];
        return g < 0 ? 0 : whole[g] ? blocks_of(g) - lacks(u, t) : u - first_block[g];
    }
};

// Returns the reason, as a message for the user, why sinkhorn cannot compute this mask. Returns an empty string if
// sinkhorn can compute it.
inline std::string block_refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries)
        if (q.begin < q.end && q.rule == Rule::rank) return "blocks are neighbours in a text, and ranks scatter them";
    return list_refuses(graph);
}

// Returns an upper bound of the number of blocks of all lists. All lists together have at most lists_of_a_row() * rows
// keys. Each list has its own key segment `self`, and only its last block can have fewer than `block` keys. A list with
// blocks has more than `block` keys, so more than half of the rows of its blocks are keys. If a mask has more blocks
// than this bound, block_plan_numbers() throws Error. The bound depends only on the number of rows, the number of key
// segments and lists_of_a_row(), not on which rows have a query. Batches in which these numbers are equal therefore
// need equally much memory.
inline std::int64_t most_blocks(const SegmentGraph& graph, std::int64_t rows, int block) {
    const std::int64_t keys = graph.lists_of_a_row(rows) * rows;
    return std::max<std::int64_t>(1, std::min(keys / block + std::int64_t(graph.keys.size()), 2 * keys / block));
}

// Returns the contents of a BlockPlan as one list of numbers, which includes the numbers of the ListPlan. block_plan()
// makes a BlockPlan from this list.
inline std::vector<int> block_plan_numbers(const char* op, const SegmentGraph& graph, std::int64_t rows,
                                           std::int64_t queries, int block) {
    if (const std::string why = block_refuses(graph); !why.empty()) throw Error(op, ": ", why);
    const std::vector<int> lists = list_plan_numbers(op, graph, rows, queries);
    const ListPlan plan = list_plan(lists, lists.data());
    std::vector<int> first_block = {0}, group_of;
    int most = 0;
    for (int g = 0; g < plan.groups; g++) {
        const int keys = plan.first_key[g + 1] - plan.first_key[g],
                  blocks = keys > block ? (keys + block - 1) / block : 0;
        group_of.insert(group_of.end(), blocks, g);
        first_block.push_back(int(group_of.size()));
        most = std::max(most, blocks);
    }
    const std::int64_t bound = most_blocks(graph, rows, block);
    if (std::int64_t(group_of.size()) > bound)
        throw Error(op, ": ", group_of.size(), " blocks, of queries that do not share lists of keys; expected at most ",
                    bound);
    group_of.resize(bound, -1);
    const std::vector<int> sizes = {block, most};
    return detail::joined({&sizes, &first_block, &group_of, &lists});
}

// Returns the BlockPlan of the numbers n that block_plan_numbers() has returned. `at` is the address at which kernels
// can read the same numbers.
inline BlockPlan block_plan(const std::vector<int>& n, const int* at) {
    const auto [sizes, first_block, group_of, lists] = detail::tables_in<4>(n, at);
    const int blocks = n[2], block = n[4], most = n[5];  // the four lengths come before the numbers of `sizes`
    return {list_plan({n.end() - n[3], n.end()}, lists), block, blocks, most, first_block, group_of};
}

}  // namespace masquerade

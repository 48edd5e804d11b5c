// SPDX-License-Identifier: MIT
// Decides which query rows see which key rows of a SegmentGraph. Softmax attention, local_lambda, the drawings of masks
// and the tests use these functions. state_plan.h and list_plan.h accept fewer masks, and do not call visible().
// "Place" stands for a position in a segment, in the source or target of a document, or in the document.
#pragma once
#include "engine/math/lanes.h"
#include "engine/ops/segments.h"

namespace masquerade {

// True if the rule lets a query at position i of a segment see the key at position j of this segment. For rank,
// strict_rank and bits, the result is always true: visible() checks these three rules with the ranks and bits of the
// graph.
HD bool rule_allows(Rule rule, int i, int j) {
    switch (rule) {
        case Rule::none: return false;
        case Rule::causal: return j <= i;
        case Rule::strict_causal: return j < i;
        case Rule::anticausal: return j >= i;
        default: return true;
    }
}

// has_pattern(q) is true if q has a pattern, that is, if a window or blocks limit which keys q sees.
// has_pattern(q, key_segment) is true if the pattern limits which keys of this key segment q sees.
HD bool has_pattern(const QuerySegment& q) { return q.window >= 0 || q.block > 0; }
HD bool has_pattern(const QuerySegment& q, int key_segment) {
    return has_pattern(q) && (key_segment == q.self || q.window_all || q.along);
}

// The places of a query row and of a key segment, with which the pattern of a query segment (window, stride, globals,
// blocks) is tested:
//     query       place of the query row, counted from a start that is the same for all key segments; it is compared
//                 with QuerySegment::globals
//     first_key   place of the first row of the key segment
//     middle      place of the query row, counted from the same start as first_key
struct Places {
    int query, first_key, middle;
};
// Returns the Places of a query row and a key segment. Graph is SegmentGraph or, in kernels, a struct of pointers
// whose members have the same names.
template <class Graph>
HD Places places_of(const Graph& graph, const QuerySegment& q, int query_row, int key_segment) {
    const KeySegment& other = graph.keys[key_segment];
    const int own = q.self >= 0 ? graph.keys[q.self].place : 0, i = q.offset + query_row - q.begin;
    if (q.along) return {own + i, other.place, own + i};
    return {i, other.before, i + own - (other.place - other.before)};
}

// Positions are cut into blocks of `length`. Returns the index of the block that contains the position `place`;
// negative if `place` is negative.
HD int block_of(int place, int length) { return (place < 0 ? place - length + 1 : place) / length; }

// True if the pattern of q (window, stride, globals, blocks) lets the query row whose places are `row` see the key at
// place j.
HD bool pattern_allows(const QuerySegment& q, const Places& row, int j) {
    if (row.query < q.globals || j < q.globals) return true;
    const int d = row.middle < j ? j - row.middle : row.middle - j;
    if (q.window >= 0 && d <= q.window * q.dilation && d % q.dilation == 0) return true;
    if (q.window >= 0 && q.stride > 0 && d % q.stride == 0) return true;
    if (q.block <= 0) return false;
    const int back = block_of(row.middle, q.block) - j / q.block;
    return (back >= 0 && back <= q.block_before) || j % q.block >= q.block - q.block_last;
}

// True if row query_row of query segment q sees row key_row of a key segment. q must list the key segment.
template <class Graph>
HD bool visible(const Graph& graph, const QuerySegment& q, int query_row, int key_segment, int key_row) {
    const KeySegment& key = graph.keys[key_segment];
    const int j = key_row - key.begin;
    if (has_pattern(q, key_segment)) {
        const Places row = places_of(graph, q, query_row, key_segment);
        if (!pattern_allows(q, row, row.first_key + j)) return false;
    }
    if (key_segment != q.self) return true;
    if (q.rule == Rule::rank) return graph.key_rank[key_row] <= graph.query_rank[query_row];
    if (q.rule == Rule::strict_rank) return graph.key_rank[key_row] < graph.query_rank[query_row];
    if (q.rule == Rule::bits) {
        const std::int64_t bit = q.bits_begin + std::int64_t(query_row - q.begin) * (key.end - key.begin) + j;
        return graph.bits[bit / 32] >> bit % 32 & 1u;
    }
    return rule_allows(q.rule, q.offset + query_row - q.begin, j);
}

// True if every row of q is sure to see all keys of the key segment, so that no pair of rows needs to be checked. If a
// pattern or a rule could hide a key, the result is false, even if no key is hidden. q must list the key segment.
inline bool sees_whole(const QuerySegment& q, int key_segment) {
    return !has_pattern(q, key_segment) && (key_segment != q.self || q.rule == Rule::full);
}

// Calls f(begin, end), in order, for each run (range of consecutive places) in [begin, end) that a query row at place
// `middle` sees by the pattern of q (window, stride, globals, blocks). The query row must not be one of the first
// q.globals places. For each part of the pattern, the function computes where the next run begins, so that it skips the
// places between runs.
template <class F>
void each_run_of_pattern(const QuerySegment& q, int middle, int begin, int end, F f) {
    for (int from, to; begin < end; begin = to) {
        from = to = end;
        auto offer = [&](int first, int last) {
            if (first < begin) first = begin;
            if (first < last && (first < from || (first == from && last > to))) from = first, to = last;
        };
        offer(0, q.globals);
        if (q.window >= 0) {
            const int reach = q.window * q.dilation, low = middle - reach, high = middle + reach;
            const int next = begin < low ? low : low + (begin - low + q.dilation - 1) / q.dilation * q.dilation;
            if (q.dilation == 1)
                offer(low, high + 1);
            else if (next <= high)
                offer(next, next + 1);
        }
        if (q.window >= 0 && q.stride > 0) {
            const int next = begin + ((middle - begin) % q.stride + q.stride) % q.stride;
            offer(next, next + 1);
        }
        if (q.block > 0) {
            const int own = block_of(middle, q.block), after = (begin / q.block + 1) * q.block;
            offer((own - q.block_before) * q.block, (own + 1) * q.block);
            offer(after - q.block_last, after);
        }
        if (to > end) to = end;
        if (from < to) f(from, to);
    }
}

// Calls f(begin, end), in order, for each range of rows of a key segment that a query row sees. The ranges are computed
// from the rule and the pattern of q, without a test of every row. There is one exception: if the key segment is q.self
// and the rule is rank, strict_rank or bits, visible() tests every row that the pattern allows, and f is called for one
// row at a time.
template <class Graph, class F>
void each_run(const Graph& graph, const QuerySegment& q, int query_row, int key_segment, F f) {
    const KeySegment& key = graph.keys[key_segment];
    int i = q.offset + query_row - q.begin, begin = 0, end = key.end - key.begin;
    const bool self = key_segment == q.self;
    if (self) {
        if (q.rule == Rule::none) end = 0;
        if (q.rule == Rule::causal && i + 1 < end) end = i + 1;
        if (q.rule == Rule::strict_causal && i < end) end = i;
        if (q.rule == Rule::anticausal && i > begin) begin = i;
    }
    const bool plain = !self || (q.rule != Rule::rank && q.rule != Rule::strict_rank && q.rule != Rule::bits);
    auto rows = [&](int from, int to) {
        if (plain && from < to) f(key.begin + from, key.begin + to);
        for (int j = from; !plain && j < to; j++)
            if (visible(graph, q, query_row, key_segment, key.begin + j)) f(key.begin + j, key.begin + j + 1);
    };
    if (!has_pattern(q, key_segment)) return rows(begin, end);
    const Places row = places_of(graph, q, query_row, key_segment);
    if (row.query < q.globals) return rows(begin, end);
    each_run_of_pattern(q, row.middle, begin + row.first_key, end + row.first_key,
                        [&](int from, int to) { rows(from - row.first_key, to - row.first_key); });
}

}  // namespace masquerade

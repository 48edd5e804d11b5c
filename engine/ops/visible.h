// SPDX-License-Identifier: MIT
// Who sees whom: the one reading of a SegmentGraph. Every form of attention, every drawing and every test
// asks here.
#pragma once
#include "engine/math/lanes.h"
#include "engine/ops/segments.h"

namespace masquerade {

// Whether a rule allows places i and j, judged by the places alone; visible() looks up ranks and bits.
HD bool rule_allows(Rule rule, int i, int j) {
    switch (rule) {
        case Rule::none: return false;
        case Rule::causal: return j <= i;
        case Rule::strict_causal: return j < i;
        case Rule::anticausal: return j >= i;
        default: return true;
    }
}

// Whether places i and j, `distance` apart, are near enough. Without a window they always are.
HD bool window_allows(const QuerySegment& q, int i, int j, int distance) {
    if (q.window < 0 || i < q.globals || j < q.globals) return true;
    int d = distance < 0 ? -distance : distance;
    return (d <= q.window * q.dilation && d % q.dilation == 0) || (q.stride > 0 && d % q.stride == 0);
}

// How far the places of q lie behind those of another key segment in the document. A Graph is a SegmentGraph, or
// pointers of the same names: kernels have those.
template <class Graph>
HD int places_behind(const Graph& graph, const QuerySegment& q, int key_segment) {
    return (q.self >= 0 ? graph.keys[q.self].place : 0) - graph.keys[key_segment].place;
}

// Whether a row of q, a query segment, sees a row of one of the key segments that it lists.
template <class Graph>
HD bool visible(const Graph& graph, const QuerySegment& q, int query_row, int key_segment, int key_row) {
    const KeySegment& key = graph.keys[key_segment];
    int i = q.offset + query_row - q.begin, j = key_row - key.begin;
    if (key_segment != q.self)
        return !q.window_all || window_allows(q, i, j, i - j + places_behind(graph, q, key_segment));
    if (!window_allows(q, i, j, i - j)) return false;
    if (q.rule == Rule::rank) return graph.key_rank[key_row] <= graph.query_rank[query_row];
    if (q.rule == Rule::strict_rank) return graph.key_rank[key_row] < graph.query_rank[query_row];
    if (q.rule == Rule::bits) {
        std::size_t bit = std::size_t(q.bits_begin) +
                          std::size_t(query_row - q.begin) * std::size_t(key.end - key.begin) +
                          std::size_t(j);
        return graph.bits[bit / 32] >> bit % 32 & 1u;
    }
    return rule_allows(q.rule, i, j);
}

// Whether every row of q sees all of the key segment, so that nobody needs to ask further.
inline bool sees_whole(const QuerySegment& q, int key_segment) {
    return key_segment == q.self ? q.rule == Rule::full && q.window < 0 : !q.window_all || q.window < 0;
}

// Calls f(begin, end) for the runs of rows of the key segment that a query row sees, in order. A plain
// interval is found at once; where there is a window, only the rows it can reach and the global ones are
// asked.
template <class Graph, class F>
void each_run(const Graph& graph, const QuerySegment& q, int query_row, int key_segment, F f) {
    const KeySegment& key = graph.keys[key_segment];
    int i = q.offset + query_row - q.begin, n = key.end - key.begin, begin = 0, end = n;
    bool self = key_segment == q.self, windowed = q.window >= 0 && (self || q.window_all);
    if (self) {
        if (q.rule == Rule::none) end = 0;
        if (q.rule == Rule::causal && i + 1 < end) end = i + 1;
        if (q.rule == Rule::strict_causal && i < end) end = i;
        if (q.rule == Rule::anticausal && i > begin) begin = i;
    }
    auto whole = [&](int from, int to) {
        if (from < to) f(key.begin + from, key.begin + to);
    };
    auto asked = [&](int from, int to) {
        for (int j = from; j < to; j++)
            if (visible(graph, q, query_row, key_segment, key.begin + j)) f(key.begin + j, key.begin + j + 1);
    };
    bool plain = !self || (q.rule != Rule::rank && q.rule != Rule::strict_rank && q.rule != Rule::bits);
    if (!windowed || i < q.globals) return plain ? whole(begin, end) : asked(begin, end);
    if (q.stride > 0) return asked(begin, end);
    int middle = self ? i : i + places_behind(graph, q, key_segment), reach = q.window * q.dilation;
    int low = middle - reach < begin ? begin : middle - reach,
        high = middle + reach + 1 < end ? middle + reach + 1 : end;
    int globals = q.globals < end ? q.globals : end;
    if (low < globals) low = globals;
    if (plain) whole(begin, globals);
    else asked(begin, globals);
    if (plain && q.dilation == 1) whole(low, high);
    else asked(low, high);
}

}  // namespace masquerade

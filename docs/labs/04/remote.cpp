// SPDX-License-Identifier: MIT
// The functions of lab 4 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
//
// The engine and the check read the graph that the student's process returns. Therefore, looked_at() first checks that
// all indices in the graph are in range.
#include "docs/labs/04/lab.h"
#include "docs/labs/remote/both.h"
#include "engine/ops/cpu/parallel.h"

#ifndef LAB_JUDGE
static const bool has_one_thread = (masquerade::set_threads(1), true);  // the cage forbids starting threads
#endif

namespace masquerade {

template <class F>
void fields(F f, Document& d) {
    f(d.source, d.target);
}
template <class F>
void fields(F f, KeySegment& k) {
    f(k.source, k.begin, k.end, k.place);
}
template <class F>
void fields(F f, QuerySegment& q) {
    f(q.begin, q.end, q.document, q.sees_begin, q.sees_end, q.self, q.offset, q.rule, q.window, q.dilation, q.stride,
      q.globals, q.block, q.block_before, q.block_last, q.window_all, q.along, q.bits_begin);
}
template <class F>
void fields(F f, SegmentGraph& g) {
    f(g.keys, g.queries, g.sees, g.query_rank, g.key_rank, g.bits, g.documents);
}

#ifdef LAB_JUDGE
static SegmentGraph looked_at(SegmentGraph graph, const Documents& documents) {
    int rows = 0;
    for (const Document& d : documents) rows += d.source + d.target;
    const auto within = [](int begin, int end, std::size_t size) {
        return 0 <= begin && begin <= end && std::size_t(end) <= size;
    };
    bool fits =
        0 <= graph.documents && graph.documents <= 1000 && graph.keys.size() <= 1000 && graph.queries.size() <= 1000;
    for (const KeySegment& k : graph.keys)
        fits =
            fits && k.source == 0 && within(k.begin, k.end, std::size_t(rows)) && within(0, k.place, std::size_t(rows));
    for (int segment : graph.sees) fits = fits && within(0, segment + 1, graph.keys.size());
    for (const QuerySegment& q : graph.queries) {
        fits = fits && within(q.begin, q.end, std::size_t(rows)) &&
               within(q.sees_begin, q.sees_end, graph.sees.size()) && q.self < int(graph.keys.size());
        fits = fits && within(0, q.document + 1, std::size_t(std::max(graph.documents, 0))) &&
               within(0, q.offset, std::size_t(rows)) && q.rule >= Rule::none && q.rule <= Rule::bits;
        for (int each : {q.dilation, q.stride, q.globals, q.block, q.block_before, q.block_last, q.window, q.self})
            fits = fits && -1 <= each && each <= 1000;
        if (q.rule == Rule::rank || q.rule == Rule::strict_rank)
            fits = fits && graph.query_rank.size() == std::size_t(rows) && graph.key_rank.size() == std::size_t(rows);
        const auto bits = std::size_t(rows) * std::size_t(rows);
        if (q.rule == Rule::bits)
            fits = fits && 0 <= q.bits_begin && graph.bits.size() >= (std::size_t(q.bits_begin) + bits + 31) / 32;
    }
    if (!fits) throw Error("the graph points outside of its own lists or of the batch");
    return graph;
}
#define GRAPH(name, parameters, ...) \
    SegmentGraph name parameters { return looked_at(remote::call<SegmentGraph>(#name, __VA_ARGS__), documents); }
#else
#define GRAPH(name, parameters, ...) REMOTE(SegmentGraph, name, parameters, __VA_ARGS__)
#endif

GRAPH(prefix_lm, (const Documents& documents), documents)
GRAPH(one_way, (const Documents& documents), documents)
GRAPH(one_way_near, (const Documents& documents, int radius), documents, radius)
REMOTE(bool, one_way_sees, (int source, int i, int j), source, i, j)
REMOTE(std::string, picture, (const SegmentGraph& graph, int rows), graph, rows)

}  // namespace masquerade

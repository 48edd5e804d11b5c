// SPDX-License-Identifier: MIT
// Lab 4, solved. docs/ops/segments.md explains how a graph is read, and docs/add-a-mask.md how a graph is built.
#include "docs/labs/04/lab.h"

namespace masquerade {

SegmentGraph prefix_lm(const Documents& documents) {
    SegmentBuilder build;
    for (const Document& d : documents) {
        build.next_document();
        const int a = build.tokens(d.source), b = build.tokens(d.target);
        build.look(Rule::full, a, {a});
        build.look(Rule::causal, b, {a, b});
    }
    return build.take();
}

SegmentGraph one_way(const Documents& documents) {
    SegmentBuilder build;
    for (const Document& d : documents) {
        build.next_document();
        const int first = d.source > 0 ? 1 : 0;
        const int cls = build.tokens(first), rest = build.tokens(d.source - first), b = build.tokens(d.target);
        build.look(Rule::full, cls, {cls, rest});
        build.look(Rule::full, rest, {rest});
        build.look(Rule::causal, b, {cls, b});
    }
    return build.take();
}

SegmentGraph one_way_near(const Documents& documents, int radius) { return with_window(one_way(documents), {radius}); }

bool one_way_sees(int source, int i, int j) {
    const bool cls = source > 0 && j == 0;
    if (i >= source) return j <= i && (j >= source || cls);
    return j < source && (i == 0 || !cls);
}

std::string picture(const SegmentGraph& graph, int rows) {
    std::vector<std::string> lines(std::size_t(rows), std::string(std::size_t(rows), '.') + '\n');
    for (const QuerySegment& q : graph.queries)
        for (int at = q.sees_begin; at < q.sees_end; at++) {
            const int seen = graph.sees[std::size_t(at)];
            const KeySegment& key = graph.keys[std::size_t(seen)];
            for (int i = q.begin; i < q.end; i++)
                for (int j = key.begin; j < key.end; j++)
                    if (key.source == 0 && visible(graph, q, i, seen, j)) lines[std::size_t(i)][std::size_t(j)] = '#';
        }
    std::string all;
    for (const std::string& line : lines) all += line;
    return all;
}

}  // namespace masquerade

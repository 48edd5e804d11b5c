// SPDX-License-Identifier: MIT
// The rows of the op table for attention that sorts rows by content: lsh_attention and sinkhorn. The sizes {rows,
// columns, other} are the number of rows, the width of a head, and the number of heads.
#include "engine/check/ops_table.h"
#include "engine/ops/block_plan.h"

namespace masquerade::ladder {
namespace {

// Makes the documents of `build`, followed by one row that belongs to no document. If `some` is true, only some rows of
// each query segment are queries: rows 1, 2 and 3, and all rows from row 6 on, counted from 0 in the segment.
Layout with_one_more(const Build& build, int rows, bool some) {
    Layout all = build(rows);
    all.keys[0]++;
    if (!some) return all;
    std::vector<QuerySegment> asking;
    int row = 0;
    for (const QuerySegment& q : all.graph.queries)
        for (const auto& [from, to] : {std::pair(1, 4), std::pair(6, q.end - q.begin)}) {
            const int count = std::min(to, q.end - q.begin) - from;
            if (count <= 0) continue;
            asking.push_back(q);
            asking.back().begin = row, asking.back().end = row += count, asking.back().offset = from;
        }
    all.graph.queries = asking;
    return all;
}

int asking(const Layout& layout) { return layout.graph.queries.empty() ? 0 : layout.graph.queries.back().end; }

Op with_sizes(const std::string& name, const std::function<Case(Sizes)>& make) {
    return costly_op(name, make, {{1, 1, 1}, {2, 4, 2}, {31, 8, 1}, {33, 32, 2}, {129, 8, 2}, {9, 64, 3}, {50, 65, 1}},
                     {{1291, 2, 1}});
}

Op lsh_op(const std::string& use, const Build& build, int rounds, int buckets, int chunk, bool some, float dropout) {
    return with_sizes("lsh_attention, " + use, [=](Sizes n) {
        const int D = n.columns, C = D * n.other;
        const auto layout = std::make_shared<Layout>(with_one_more(build, n.rows, some));
        const int N = layout->keys[0], M = some ? asking(*layout) : N;
        const LshRule rule{{n.other, dropout, make_stream(5, "ladder", 2), {}}, rounds, buckets, chunk};
        Case c = stated("CNRMH", {C, N, rounds * buckets / 2, M, n.other}, lsh_attention_forward,
                        lsh_attention_backward, lsh_attention, layout, rule, std::int64_t(M));
        for (Operand& o : c.operands) o.sums(D + 4 * rounds * chunk, 4).at_least(1);
        for (const char* name : {"q", "k", "v"}) c[name].from_rounded();
        c["y"].with_any_rows();
        if (dropout > 0) name_rows(c, M, 6, false);
        return c;
    });
}

Case sinkhorn_case(Sizes n, const Build& build, bool some) {
    const int N = n.rows + 1, C = n.columns * n.other;
    const auto layout = std::make_shared<Layout>(with_one_more(build, n.rows, some));
    const SinkhornRule rule{n.other, 4, 3, 0.75};
    const int rows = int(most_blocks(layout->graph, N, rule.block)) * rule.block;
    Case c = stated("CNU", {C, N, rows}, sinkhorn_forward, sinkhorn_backward, sinkhorn, layout, rule);
    for (Operand& o : c.operands) o.sums(n.columns + 40, 8).at_least(1);
    return c;
}

}  // namespace

std::vector<Op> bucket_ops() {
    return {
        lsh_op("one round", by_rule(Rule::full), 1, 4, 3, false, 0),
        lsh_op("rounds", by_rule(Rule::full), 3, 6, 2, false, 0),
        lsh_op("some rows ask", by_rule(Rule::full), 2, 2, 4, true, 0),
        lsh_op("dropout", by_rule(Rule::full), 2, 4, 4, false, 0.25f),
        lsh_op("causal", by_rule(Rule::causal), 2, 4, 3, false, 0.25f),
        lsh_op("anticausal", by_rule(Rule::anticausal), 1, 2, 2, true, 0),
        lsh_op("prefix", prefix, 2, 4, 2, false, 0),
        lsh_op("ranks", by_rule(Rule::rank), 2, 2, 3, false, 0),
        with_sizes("sinkhorn", with(sinkhorn_case, by_rule(Rule::full), false)),
        with_sizes("sinkhorn, causal", with(sinkhorn_case, by_rule(Rule::causal), true)),
        with_sizes("sinkhorn, anticausal", with(sinkhorn_case, by_rule(Rule::anticausal), false)),
        with_sizes("sinkhorn, prefix", with(sinkhorn_case, prefix, false)),
    };
}

}  // namespace masquerade::ladder

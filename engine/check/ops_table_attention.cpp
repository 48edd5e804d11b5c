// SPDX-License-Identifier: MIT
// The rows of softmax attention in the op table: every Rule, a second key source, window and block patterns, dropout,
// and query heads that share key heads. The sizes {rows, columns, other} are the number of query rows, the width of a
// head, and the number of key heads.
#include "engine/check/ops_table.h"

#include <algorithm>

namespace masquerade::ladder {
namespace {

// Returns the lengths of documents that have `rows` rows together. If `rows` is above 700, the first document is long:
// it has all rows except the last 130.
std::vector<int> lengths(int rows) {
    const int cycle[] = {4, 1, 9, 2, 33, 3, 130, 17};
    std::vector<int> all;
    if (rows > 700) all.push_back(rows - 130), rows = 130;
    for (std::size_t i = 0; rows > 0; i++) {
        all.push_back(std::min(rows, cycle[i % 8]));
        rows -= all.back();
    }
    return all;
}

// Makes a layout in which each document is one query segment and one key segment. change(query segment, layout) is
// called for each document and may change its segments.
template <class F>
Layout documents(int rows, F change) {
    Layout all;
    SegmentGraph& g = all.graph;
    int row = 0;
    for (int n : lengths(rows)) {
        QuerySegment q;
        q.begin = row;
        q.end = row += n;
        q.document = g.documents++;
        q.self = int(g.keys.size());
        g.see({0, all.keys[0], all.keys[0] + n, 0});
        all.keys[0] += n;
        change(q, all);
        g.add(q);
    }
    return all;
}

}  // namespace

int longest(int rows) { return (rows > 700 ? rows : std::min(rows, 140)) + 1; }

Build by_rule(Rule rule) {
    return [rule](int rows) {
        Layout all = documents(rows, [rule](QuerySegment& q, Layout& layout) {
            q.rule = rule;
            q.bits_begin = 32 * int(layout.graph.bits.size()) + 7;
            if (rule != Rule::bits) return;
            int n = q.end - q.begin;
            Sequence random(std::uint64_t(q.begin), "bits");
            for (int word = 0; word < (n * n + 7) / 32 + 1; word++) layout.graph.bits.push_back(random.bits());
        });
        for (int i = 0; i < rows; i++) {
            all.graph.query_rank.push_back(i * 7 % 5 - 1);
            all.graph.key_rank.push_back(i * 7 % 5 - 1);
        }
        return all;
    };
}

Layout with_latent(int rows) {
    return documents(rows, [](QuerySegment& q, Layout& all) {
        q.rule = Rule::causal;
        all.graph.sees.pop_back();
        all.graph.see({1, all.keys[1], all.keys[1] + 1, 0});
        all.graph.sees.push_back(q.self);
        all.keys[1]++;
    });
}

Layout prefix(int rows) {
    Layout all = documents(rows, [](QuerySegment&, Layout&) {});
    SegmentGraph halves;
    halves.documents = all.graph.documents;
    for (const QuerySegment& whole : all.graph.queries) {
        int middle = (whole.begin + whole.end) / 2, first = int(halves.keys.size());
        QuerySegment a = whole, b = whole;
        a.end = b.begin = middle;
        a.self = first, b.self = first + 1;
        b.rule = Rule::causal;
        halves.see({0, whole.begin, middle, 0});
        halves.add(a);
        halves.sees.push_back(first);
        halves.see({0, middle, whole.end, middle - whole.begin});
        halves.add(b);
    }
    all.graph = halves;
    return all;
}

namespace {

Layout windowed(int rows) {
    return documents(rows, [](QuerySegment& q, Layout&) {
        q.rule = q.document % 2 ? Rule::causal : Rule::full;
        q.window = 2 + q.document % 3;
        q.dilation = 1 + q.document % 2;
        q.stride = q.document % 3 == 2 ? 5 : 0;
        q.globals = q.document % 2;
    });
}

Layout blocked(int rows) {
    return documents(rows, [](QuerySegment& q, Layout&) {
        q.rule = q.document % 2 ? Rule::causal : Rule::full;
        q.block = 3 + 5 * (q.document % 3);
        q.block_before = q.document % 2;
        q.block_last = q.document % 3 == 0 ? 2 : 0;
    });
}

// Cached keys, as in decoding. Each document has five more key rows than query rows, and these five rows come first.
// Queries see the first two of the five rows twice. If a document has more than two rows, its last query row is taken
// out of the document and belongs to no document.
Layout cached(int rows) {
    Layout all = documents(rows, [](QuerySegment& q, Layout& layout) {
        q.rule = q.document % 2 ? Rule::causal : Rule::full;
        q.offset = 5;
        layout.graph.keys.back().end += 5;
        layout.keys[0] += 5;
        if (q.end - q.begin > 2) q.end--, layout.graph.keys.back().end--;
        const int first = layout.graph.keys.back().begin;
        layout.graph.see({0, first, first + 2, 0});
    });
    return all;
}

// Returns the row of the op table for one mask. `readers` query heads share each key head.
Op attention_op(const std::string& use, const Build& build, float dropout = 0, int readers = 1) {
    const auto make = [=](Sizes n) {
        const int N = n.rows, D = n.columns, H = readers * n.other, C = H * D, kv_columns = 2 * n.other * D;
        const auto layout = std::make_shared<Layout>(build(N));
        const AttentionRule rule{H, dropout, make_stream(5, "ladder", 2), {}};
        Case c = stated("CNH", {C, N, H}, attention_forward, attention_backward, attention, layout, rule, H, dropout);
        for (Operand& o : c.operands) o.sums(D + longest(N));
        // In bf16, the CUDA kernels round the gradients of the scores to bf16, which from_rounded() takes into account.
        c["q"].from_rounded();
        c["lse"].at_least(1);
        for (int s = 0; s < layout->sources(); s++)
            c.input(s ? "kv1" : "kv", {layout->keys[s], kv_columns})
                .from_rounded()
                .with_any_rows()
                .sums(D + longest(N) * readers);
        if (dropout > 0) name_rows(c, N, 6, false);
        return c;
    };
    return costly_op("attention, " + use, make,
                     {{1, 1, 1},
                      {2, 4, 2},
                      {31, 8, 1},
                      {32, 33, 2},
                      {33, 32, 2},
                      {63, 2, 3},
                      {65, 31, 1},
                      {127, 16, 2},
                      {129, 8, 5},
                      {9, 64, 12},
                      {50, 65, 1},
                      {40, 128, 1},
                      {4, 161, 2},
                      {150, 64, 1},
                      {600, 4, 1},
                      {260, 32, 2}},
                     {{771, 3, 1}, {3, 259, 2}});
}

}  // namespace

std::vector<Op> attention_ops() {
    return {
        attention_op("full", by_rule(Rule::full)),
        attention_op("causal", by_rule(Rule::causal)),
        attention_op("strict causal", by_rule(Rule::strict_causal)),
        attention_op("anticausal", by_rule(Rule::anticausal)),
        attention_op("none", by_rule(Rule::none)),
        attention_op("rank", by_rule(Rule::rank)),
        attention_op("strict rank", by_rule(Rule::strict_rank)),
        attention_op("bits", by_rule(Rule::bits)),
        attention_op("latent key", with_latent),
        attention_op("prefix", prefix),
        attention_op("window", windowed),
        attention_op("blocks", blocked),
        attention_op("cached", cached),
        attention_op("dropout", by_rule(Rule::rank), 0.25f),
        attention_op("dropout, latent key", with_latent, 0.25f),
        attention_op("two heads a key head", prefix, 0, 2),
        attention_op("three heads a key head, dropout", by_rule(Rule::full), 0.25f, 3),
    };
}

}  // namespace masquerade::ladder

// SPDX-License-Identifier: MIT
#include "models/masks/mask.h"

#include <algorithm>

#include "engine/base/error.h"
#include "models/masks/builder.h"
#include "models/masks/words.h"

namespace masquerade {
namespace {

// Returns a graph in which each document is one segment with this rule. This is for rules that masks in words
// (models/masks/words.h) cannot express.
SegmentGraph one_segment(const Documents& documents, Rule rule) {
    SegmentBuilder build;
    for (const Document& d : documents) {
        build.next_document();
        int all = build.tokens(d.source + d.target);
        build.look(rule, all, {all});
    }
    return build.take();
}

// Returns the number of keys in the key segment q.self. Under Rule::bits, each row of q has one bit for each of these
// keys.
int keys_of(const SegmentGraph& graph, const QuerySegment& q) {
    return graph.keys[q.self].end - graph.keys[q.self].begin;
}

void expect_per_row(const char* what, std::size_t found, const Documents& documents) {
    if (found != std::size_t(rows_of(documents)))
        throw Error("mask: ", found, " numbers for ", what, ", expected one for each of ", rows_of(documents), " rows");
}

}  // namespace

Documents sources_of(const Documents& documents) {
    Documents sources;
    for (const Document& d : documents) sources.push_back({d.source, 0});
    return sources;
}

Documents targets_of(const Documents& documents) {
    Documents targets;
    for (const Document& d : documents) targets.push_back({0, d.target});
    return targets;
}

int rows_of(const Documents& documents) {
    int rows = 0;
    for (const Document& d : documents) rows += d.source + d.target;
    return rows;
}

std::vector<char> parts_of_rows(const Documents& documents) {
    std::vector<char> parts;
    for (const Document& d : documents) {
        parts.resize(parts.size() + d.source, 0);
        parts.resize(parts.size() + d.target, 1);
    }
    return parts;
}

SegmentGraph full_mask(const Documents& documents) {
    static const MaskWords words("AB full");
    return words(documents);
}
SegmentGraph causal_mask(const Documents& documents) {
    static const MaskWords words("AB causal");
    return words(documents);
}
SegmentGraph anticausal_mask(const Documents& documents) {
    static const MaskWords words("AB anticausal");
    return words(documents);
}
SegmentGraph unilm_mask(const Documents& documents) {
    static const MaskWords words("A full; B causal sees A");
    return words(documents);
}
SegmentGraph independent_mask(const Documents& documents) {
    static const MaskWords words("A full; B causal");
    return words(documents);
}
SegmentGraph uniae_mask(const Documents& documents) {
    static const MaskWords words("A full; B causal sees A[0]");
    return words(documents);
}

SegmentGraph cross_mask(const Documents& documents) {
    static const MaskWords words("B none sees A");
    return words.cross(documents);
}

SegmentGraph latent_mask(const Documents& documents) {
    SegmentBuilder build(1);
    for (const Document& d : documents) {
        build.next_document();
        int z = build.key(0, build.graph().documents - 1, build.graph().documents, 0);
        int b = build.tokens(d.target);
        build.look(Rule::causal, b, {z, b});
    }
    return build.take();
}

SegmentGraph conditional_mask(const Documents& halves, const Documents& decoders) {
    SegmentBuilder build;
    for (std::size_t d = 0; d < halves.size(); d++) {
        build.next_document();
        const int half = build.tokens(halves[d].source), source = build.tokens(decoders[d].source);
        const int target = build.tokens(decoders[d].target);
        build.look(Rule::full, half, {half});
        build.look(Rule::full, source, {source});
        if (decoders[d].target > 0) build.look(Rule::causal, target, {source, target});
    }
    return build.take();
}

SegmentGraph full_for_causal(SegmentGraph graph) {
    for (QuerySegment& q : graph.queries)
        if (q.rule == Rule::causal) q.rule = Rule::full;
    return graph;
}

SegmentGraph cached_mask(const std::vector<CachedDocument>& documents, int token_source, bool backward) {
    SegmentBuilder build;
    int query = 0;
    for (const CachedDocument& d : documents) {
        build.next_document();
        const int count = d.cached + d.fresh;
        const int seen = build.key(0, d.seen_begin, d.seen_end, backward ? count : 0);
        const int own = build.key(token_source, d.begin, d.begin + count, backward ? 0 : d.seen_end - d.seen_begin);
        const Rule rule = backward ? Rule::anticausal : Rule::causal;
        QuerySegment& q =
            build.look(query, query + d.fresh, rule, own, backward ? std::vector{own, seen} : std::vector{seen, own});
        q.offset = backward ? 0 : d.cached;
        q.along = backward || d.one_text;
        query += d.fresh;
    }
    return build.take();
}

SegmentGraph rank_mask(const Documents& documents, const std::vector<int>& rank, bool strict) {
    expect_per_row("ranks", rank.size(), documents);
    SegmentGraph graph = one_segment(documents, strict ? Rule::strict_rank : Rule::rank);
    graph.query_rank = graph.key_rank = rank;
    return graph;
}

SegmentGraph two_stream_mask(const Documents& documents, const std::vector<int>& rank) {
    expect_per_row("ranks", rank.size(), documents);
    SegmentBuilder build;
    for (const Document& d : documents) {
        build.next_document();
        const int content = build.tokens(d.source), queries = build.row();
        build.look(Rule::rank, content, {content});
        build.skip(d.target);
        if (d.target > 0) build.look(queries, build.row(), Rule::strict_rank, content, {content});
    }
    build.graph().query_rank = build.graph().key_rank = rank;
    return build.take();
}

SegmentGraph block_streams_mask(const Documents& documents, const std::vector<int>& block) {
    expect_per_row("blocks", block.size(), documents);
    SegmentBuilder build;
    for (const Document& d : documents) {
        build.next_document();
        const int first = build.row(), target = first + d.source, end = target + d.target;
        build.skip(d.source + d.target);
        for (int row = first, next; row < end; row = next) {
            const int part = row < target ? first : target, part_end = row < target ? target : end;
            if (row > part && block[row] < block[row - 1])
                throw Error("mask: block ", block[row], " in row ", row, " follows block ", block[row - 1]);
            for (next = row + 1; next < part_end && block[next] == block[row];) next++;
            const int own = build.key(0, row, next, row - first);
            const auto blocks = block.begin();
            const int seen = int(std::lower_bound(blocks + first, blocks + target, block[row]) - blocks);
            build.look(Rule::full, own, {build.key(0, first, seen, 0), own});
        }
    }
    return build.take();
}

SegmentGraph only_queries(const SegmentGraph& graph, const std::vector<int>& rows) {
    std::vector<int> segment_of;
    for (std::size_t s = 0; s < graph.queries.size(); s++) {
        const QuerySegment& q = graph.queries[s];
        if (int(segment_of.size()) < q.end) segment_of.resize(q.end, -1);
        std::fill(segment_of.begin() + q.begin, segment_of.begin() + q.end, int(s));
    }
    SegmentGraph some = graph;
    some.queries.clear();
    some.query_rank.clear();
    int last = -1;  // index of the segment that contains the previous row of `rows`
    for (std::size_t m = 0; m < rows.size(); m++) {
        const int row = rows[m];
        if (row < 0 || row >= int(segment_of.size()) || segment_of[row] < 0)
            throw Error("mask: row ", row, " is in no query segment");
        const int index = segment_of[row];
        const QuerySegment& whole = graph.queries[index];
        if (index == last && row == rows[m - 1] + 1) {
            some.queries.back().end++;
        } else {
            QuerySegment q = whole;
            q.begin = int(m);
            q.end = int(m) + 1;
            q.offset += row - whole.begin;
            if (q.bits_begin >= 0) q.bits_begin += (row - whole.begin) * keys_of(graph, whole);
            some.queries.push_back(q);
        }
        if (!graph.query_rank.empty()) some.query_rank.push_back(graph.query_rank[row]);
        last = index;
    }
    return some;
}

SegmentGraph with_keys_at(const SegmentGraph& graph, const std::vector<KeyPlace>& places) {
    if (!graph.key_rank.empty()) throw Error("mask: keys with ranks cannot be moved");
    SegmentGraph moved = graph;
    moved.keys.clear(), moved.sees.clear();
    std::vector<int> first_piece;  // of each old key segment; its pieces end where those of the next one begin
    for (const KeySegment& whole : graph.keys) {
        first_piece.push_back(int(moved.keys.size()));
        for (int row = whole.begin; row < whole.end; row++) {
            const KeyPlace& at = places.at(row);
            const bool follows =
                row > whole.begin && moved.keys.back().source == at.source && moved.keys.back().end == at.row;
            const int skipped = row - whole.begin;
            if (!follows)
                moved.keys.push_back({at.source, at.row, at.row, whole.place + skipped, whole.before + skipped});
            moved.keys.back().end++;
        }
    }
    first_piece.push_back(int(moved.keys.size()));
    for (QuerySegment& q : moved.queries) {
        const int begin = int(moved.sees.size());
        for (int i = q.sees_begin; i < q.sees_end; i++) {
            const int segment = graph.sees[i];
            for (int piece = first_piece[segment]; piece < first_piece[segment + 1]; piece++)
                moved.sees.push_back(piece);
        }
        q.sees_begin = begin, q.sees_end = int(moved.sees.size());
        if (q.self < 0) continue;
        if (first_piece[q.self + 1] - first_piece[q.self] > 1)
            throw Error("mask: a segment with a rule has its keys at two places");
        q.self = first_piece[q.self];
    }
    return moved;
}

SegmentGraph bits_mask(const Documents& documents, const std::function<bool(int, int)>& sees) {
    SegmentGraph graph = one_segment(documents, Rule::bits);
    for (QuerySegment& q : graph.queries)
        add_bits(graph, q, [&, first = q.begin](int i, int j) { return sees(first + i, first + j); });
    return graph;
}

SegmentGraph knowledge_mask(const Documents& documents, const std::vector<int>& entity,
                            const std::vector<int>& branch) {
    expect_per_row("entities", entity.size(), documents);
    expect_per_row("branches", branch.size(), documents);
    return bits_mask(documents, [&](int i, int j) {
        if (branch[i] == branch[j]) return true;  // both in the trunk (the sentence), or both in one branch (a fact)
        if (branch[i] >= 0 && branch[j] >= 0) return false;
        return entity[i] >= 0 && entity[i] == entity[j];
    });
}

SegmentGraph pseudo_mask(const Documents& documents, const std::vector<int>& weight) {
    expect_per_row("weights", weight.size(), documents);
    return bits_mask(documents, [&](int i, int j) {
        int from = weight[i], to = weight[j];
        if (from >= 0) return to >= 0 && to <= from;
        return (to >= 0 && to < -from) || to == from;
    });
}

void add_window(QuerySegment& q, const Window& window) {
    q.window = window.radius;
    q.dilation = window.dilation;
    q.stride = window.stride;
    q.globals = window.globals;
    q.window_all = window.all;
}

SegmentGraph with_window(SegmentGraph graph, const Window& window) {
    if (window.radius < -1 || window.dilation < 1 || window.stride < 0 || window.globals < 0)
        throw Error("window: radius ", window.radius, ", dilation ", window.dilation, ", stride ", window.stride,
                    ", globals ", window.globals, "; expected at least -1, 1, 0, 0");
    if (window.reach() > Window::farthest)
        throw Error("window: radius ", window.radius, " times dilation ", window.dilation, " is ", window.reach(),
                    ", expected at most ", Window::farthest);
    for (QuerySegment& q : graph.queries) add_window(q, window);
    return graph;
}

}  // namespace masquerade

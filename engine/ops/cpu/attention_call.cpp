// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/attention_call.h"

#include "engine/ops/check.h"

#include <algorithm>
#include <cmath>

namespace masquerade::cpu {
namespace {

void check_tensors(const char* op, const View& q, const Views& kv, const AttentionRule& rule, const View& y,
                   const View& lse) {
    if (rule.heads < 1 || q.columns() % rule.heads != 0)
        throw Error(text(op, ": ", seen("q", q), ", not divisible into ", rule.heads, " heads"));
    for (int s = 0; s < kv.count; s++)
        if (kv[s].columns() != 2 * q.columns() || kv[s].dtype != q.dtype)
            throw Error(text(op, ": ", seen("kv", kv[s]), " but ", seen("q", q),
                             "; kv holds keys and values, twice the columns of q"));
    expect_same_shape(op, "y", y, "q", q);
    expect_shape(op, "lse", lse, {q.rows(), rule.heads}, arithmetic_of(q.dtype));
    if (!(rule.dropout >= 0 && rule.dropout < 1))
        throw Error(text(op, ": dropout is ", rule.dropout, ", expected in [0, 1)"));
    if (rule.dropout > 0) {
        expect_count(op, "documents of the queries", rule.rows.document, q.rows());
        expect_count(op, "positions of the queries", rule.rows.position, q.rows());
    }
}

void check_keys(const char* op, const Views& kv, const SegmentGraph& graph) {
    for (std::size_t k = 0; k < graph.keys.size(); k++) {
        const KeySegment& key = graph.keys[k];
        if (key.source < 0 || key.source >= kv.count)
            throw Error(text(op, ": key segment ", k, " is in source ", key.source, " of ", kv.count));
        if (key.begin < 0 || key.begin > key.end || key.end > kv[key.source].rows())
            throw Error(text(op, ": key segment ", k, " is rows ", key.begin, " to ", key.end, " but ",
                             seen("kv", kv[key.source])));
    }
}

void check_query(const char* op, const View& q, const Views& kv, const SegmentGraph& graph, int index) {
    const QuerySegment& s = graph.queries[index];
    auto refuse = [&](const auto&... why) { throw Error(text(op, ": query segment ", index, " ", why...)); };
    int keys = int(graph.keys.size());
    if (s.begin < 0 || s.begin > s.end || s.end > q.rows())
        refuse("is rows ", s.begin, " to ", s.end, " but ", seen("q", q));
    if (s.sees_begin < 0 || s.sees_begin > s.sees_end || s.sees_end > int(graph.sees.size()))
        refuse("sees entries ", s.sees_begin, " to ", s.sees_end, " of ", graph.sees.size());
    std::int64_t most = 0;
    for (int v = s.sees_begin; v < s.sees_end; v++) {
        int key = graph.sees[v];
        if (key < 0 || key >= keys) refuse("sees key segment ", key, " of ", keys);
        for (int w = s.sees_begin; w < v; w++)
            if (graph.sees[w] == key) refuse("sees key segment ", key, " twice");
        most += graph.keys[key].end - graph.keys[key].begin;
    }
    if (most >= 1 << 20) refuse("sees ", most, " keys, more than 2^20");
    if (s.self < -1 || s.self >= keys) refuse("is key segment ", s.self, " of ", keys);
    if (s.offset < 0 || s.dilation < 1 || s.stride < 0 || s.globals < 0)
        refuse("has offset ", s.offset, ", dilation ", s.dilation, ", stride ", s.stride, ", globals ",
               s.globals);
    if (s.self < 0) return;
    const KeySegment& self = graph.keys[s.self];
    bool ranked = s.rule == Rule::rank || s.rule == Rule::strict_rank;
    if (ranked && self.source != 0) refuse("is ranked, which only keys of source 0 can be");
    if (ranked && (std::int64_t(graph.query_rank.size()) != q.rows() ||
                   std::int64_t(graph.key_rank.size()) != kv[0].rows()))
        refuse("is ranked, but there are ranks for ", graph.query_rank.size(), " queries and ",
               graph.key_rank.size(), " keys, ", seen("q", q), ", ", seen("kv", kv[0]));
    std::int64_t bits = std::int64_t(s.end - s.begin) * (self.end - self.begin);
    if (s.rule == Rule::bits &&
        (s.bits_begin < 0 || s.bits_begin + bits > 32 * std::int64_t(graph.bits.size())))
        refuse("needs bits ", s.bits_begin, " to ", s.bits_begin + bits, " of ", 32 * graph.bits.size());
}

const std::vector<DocumentRange>& find_documents(const SegmentGraph& graph) {
    thread_local std::vector<DocumentRange> documents;
    documents.clear();
    int count = int(graph.queries.size());
    for (int first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && graph.queries[last].document == graph.queries[first].document;)
            last++;
        documents.push_back({first, last});
    }
    return documents;
}

const std::vector<char>& find_covered(const char* op, const View& q, const SegmentGraph& graph) {
    thread_local std::vector<char> covered;
    covered.assign(std::size_t(q.rows()), 0);
    for (const QuerySegment& s : graph.queries)
        for (int row = s.begin; row < s.end; row++) {
            if (covered[row]) throw Error(text(op, ": two query segments hold row ", row, " of q ", q.path));
            covered[row] = 1;
        }
    return covered;
}

std::uint32_t checked(const char* op, const View& q, const Views& kv, const SegmentGraph& graph,
                      const AttentionRule& rule, const View& y, const View& lse) {
    check_tensors(op, q, kv, rule, y, lse);
    check_keys(op, kv, graph);
    for (std::size_t i = 0; i < graph.queries.size(); i++) check_query(op, q, kv, graph, int(i));
    return std::uint32_t(double(rule.dropout) * 4294967296.0);
}

}  // namespace

AttentionCall::AttentionCall(const char* op, const View& queries, const Views& sources,
                             const SegmentGraph& segments, const AttentionRule& r, const View& y,
                             const View& lse)
    : q(queries), kv(sources), graph(segments), rule(r), C(int(q.columns())), D(C / std::max(1, r.heads)),
      scale(1 / std::sqrt(double(D))), threshold(checked(op, q, kv, graph, rule, y, lse)),
      documents(find_documents(graph)), covered(find_covered(op, q, graph)) {}

KeyOwners::KeyOwners(const char* op, const AttentionCall& call) {
    thread_local std::vector<int> owner[4],
        document;  // document: index into call.documents of every key segment
    const SegmentGraph& graph = call.graph;
    for (int s = 0; s < 4; s++) {
        owner[s].assign(s < call.kv.count ? std::size_t(call.kv[s].rows()) : 0, -1);
        of[s] = &owner[s];
    }
    document.assign(graph.keys.size(), -1);
    auto refuse = [&](int source, int row) {
        throw Error(text(op, ": two documents share row ", row, " of kv ", call.kv[source].path,
                         "; give each a copy, their gradients would have no order"));
    };
    for (int d = 0; d < int(call.documents.size()); d++)
        for (int i = call.documents[d].first; i < call.documents[d].last; i++)
            for (int v = graph.queries[i].sees_begin; v < graph.queries[i].sees_end; v++) {
                int k = graph.sees[v];
                const KeySegment& key = graph.keys[k];
                if (document[k] == d || key.begin == key.end) continue;
                if (document[k] >= 0) refuse(key.source, key.begin);
                document[k] = d;
                for (int row = key.begin; row < key.end; row++) {
                    int& first = owner[key.source][row];
                    if (first < 0) first = k;
                    else if (document[first] != d) refuse(key.source, row);
                }
            }
}

}  // namespace masquerade::cpu

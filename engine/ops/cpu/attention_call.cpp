// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/attention_call.h"

#include <algorithm>
#include <cmath>

namespace masquerade::cpu {
namespace {

thread_local std::vector<DocumentRange> documents_of_call;
thread_local std::vector<char> covered_by_call;

}  // namespace

int common_rows(const SegmentGraph& graph, int query) {
    const QuerySegment &q = graph.queries[query], &before = graph.queries[query - 1];
    for (int i = 0; i < std::min(q.sees_end - q.sees_begin, before.sees_end - before.sees_begin); i++) {
        const KeySegment &a = graph.keys[graph.sees[q.sees_begin + i]],
                         &b = graph.keys[graph.sees[before.sees_begin + i]];
        if (a.source == b.source && a.begin == b.begin && a.end == b.end && a.begin < a.end) return i;
    }
    return -1;
}

AttentionCall::AttentionCall(const char* op, const View& queries, const Views& sources, const SegmentGraph& segments,
                             const AttentionRule& r, const View& lse, bool joins)
    : q(queries),
      kv(sources),
      graph(segments),
      rule(r),
      heads(attention_heads(q, kv, r.heads)),
      C(int(q.columns())),
      D(heads.D),
      scale(1 / std::sqrt(double(D))),
      dropout(rule.dropout),
      documents(documents_of_call),
      covered(covered_by_call) {
    check_attention_tensors(op, q, kv, rule, lse);
    check_attention_graph(op, q, kv, graph);
    find_covered_rows(op, q, graph, covered_by_call);
    documents_of_call.clear();
    const int count = int(graph.queries.size());
    constexpr int most_joined = 16;  // more documents are left to other threads
    int documents_joined = 0;
    for (int i = 0; i < count; i++) {
        const bool same = i > 0 && graph.queries[i].document == graph.queries[i - 1].document;
        const bool joined = i > 0 && joins && !same && documents_joined < most_joined && common_rows(graph, i) >= 0;
        if (same || joined) {
            documents_of_call.back().last = i + 1;
            documents_joined += joined;
        } else {
            documents_of_call.push_back({i, i + 1});
            documents_joined = 1;
        }
    }
}

KeyOwners::KeyOwners(const char* op, const AttentionCall& call) {
    thread_local std::vector<int> owner[4],
        document;  // for each key segment: index into call.documents of the document that sees it; -1 if none does
    const SegmentGraph& graph = call.graph;
    for (int s = 0; s < 4; s++) {
        owner[s].assign(s < call.kv.count ? call.kv[s].rows() : 0, -1);
        of[s] = &owner[s];
    }
    document.assign(graph.keys.size(), -1);
    auto refuse = [&](int source, int row) {
        throw Error(op, ": two documents share row ", row, " of kv ", call.kv[source].path,
                    "; give each a copy, their gradients would have no order");
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
                    if (first < 0)
                        first = k;
                    else if (document[first] != d)
                        refuse(key.source, row);
                }
            }
}

}  // namespace masquerade::cpu

// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/attention_call.h"

#include <cmath>

namespace masquerade::cpu {
namespace {

thread_local std::vector<DocumentRange> documents_of_call;
thread_local std::vector<char> covered_by_call;

}  // namespace

AttentionCall::AttentionCall(const char* op, const View& queries, const Views& sources, const SegmentGraph& segments,
                             const AttentionRule& r, const View& lse)
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
    check_attention(op, q, kv, graph, rule, lse);
    find_covered_rows(op, q, graph, covered_by_call);
    documents_of_call.clear();
    const int count = int(graph.queries.size());
    for (int first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && graph.queries[last].document == graph.queries[first].document;) last++;
        documents_of_call.push_back({first, last});
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

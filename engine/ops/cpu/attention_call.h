// SPDX-License-Identifier: MIT
// One attention call after the checks at its door, as the forms that compute it see it.
#pragma once
#include "engine/ops/attention.h"

#include <vector>

namespace masquerade::cpu {

// The query segments [first, last) of one document, the unit of work: what two documents read and write is
// apart.
struct DocumentRange {
    int first, last;
};

struct AttentionCall {
    const View& q;
    const Views& kv;
    const SegmentGraph& graph;
    const AttentionRule& rule;
    AttentionHeads heads;
    int C, D;                 // C = H D
    double scale;             // 1 / sqrt(D)
    std::uint32_t threshold;  // dropout keeps a probability whose random bits are at least this
    const std::vector<DocumentRange>& documents;
    const std::vector<char>& covered;  // of every query row: whether a segment holds it

    // Throws Error where shapes or the graph do not fit. Valid until the thread's next one is made.
    AttentionCall(const char* op, const View& q, const Views& kv, const SegmentGraph& graph, const AttentionRule& rule,
                  const View& y, const View& lse);
};

// For every row of every key/value tensor, the first key segment that claims the row, or -1. Throws if documents
// share a row: its gradients would be summed in an order that the threads decide. Valid until the thread's
// next call.
struct KeyOwners {
    const std::vector<int>* of[4];
    KeyOwners(const char* op, const AttentionCall& call);
};

// f64 and c128: the definition (math/attention.h).
void attention_forward_reference(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_reference(const AttentionCall& call, const View& dy, const View& y, const View& lse,
                                  const Grad& dq, const Grads& dkv);
// f32 and bf16.
void attention_forward_fast(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_fast(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse,
                             const Grad& dq, const Grads& dkv);

}  // namespace masquerade::cpu

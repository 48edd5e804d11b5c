// SPDX-License-Identifier: MIT
// The checked arguments of one attention call, for the fast form of attention (f32, bf16) and for the definition (f64,
// c128).
#pragma once
#include "engine/ops/attention.h"

#include <vector>

namespace masquerade::cpu {

// The query segments [first, last) of one document. Threads may compute different documents at the same time, because
// no two documents write to the same row. In a forward, the range may consist of several documents that see common rows
// (common_rows()), such as the hypotheses of one source. The common keys are then packed only once.
struct DocumentRange {
    int first, last;
};

// Compares the key segments that query segment `query` sees with those of the query segment before it, in order.
// Returns the index of the first pair of segments that are the same rows, at least one; -1 if there is none.
int common_rows(const SegmentGraph& graph, int query);

struct AttentionCall {
    const View& q;
    const Views& kv;
    const SegmentGraph& graph;
    const AttentionRule& rule;
    AttentionHeads heads;
    int C, D;      // number of columns of q (C = H D) and of one head
    double scale;  // factor of the scores: 1 / sqrt(D) for heads of width D
    AttentionDropout dropout;
    const std::vector<DocumentRange>& documents;
    const std::vector<char>& covered;  // for each query row: whether a query segment contains it

    // Throws Error if the shapes or the segment graph are not valid. `joins` says whether a DocumentRange may have
    // several documents. An AttentionCall is valid until the same thread
    // constructs another one, because both use the same memory.
    AttentionCall(const char* op, const View& q, const Views& kv, const SegmentGraph& graph, const AttentionRule& rule,
                  const View& lse, bool joins = false);
};

// For each row of key/value tensor s, (*of[s])[row] is the index of the first key segment that contains the row and
// that a query sees; -1 if there is none. The backward stores the gradient of the row for this segment, and adds the
// gradient for later segments. The constructor throws Error if two documents share a row, because the row's gradients
// would be summed in an order that depends on the threads. A KeyOwners is valid until the same thread constructs
// another one.
struct KeyOwners {
    const std::vector<int>* of[4];
    KeyOwners(const char* op, const AttentionCall& call);
};

// Compute attention for f64 and c128, by the definition (engine/math/attention.h).
void attention_forward_reference(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_reference(const AttentionCall& call, const View& dy, const View& y, const View& lse,
                                  const Grad& dq, const Grads& dkv);
// Compute attention for f32 and bf16, by the fast form (attention_forward.cpp, attention_backward.cpp).
void attention_forward_fast(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_fast(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse,
                             const Grad& dq, const Grads& dkv);

}  // namespace masquerade::cpu

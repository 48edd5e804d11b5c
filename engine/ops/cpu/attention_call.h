// SPDX-License-Identifier: MIT
// One attention call with checked arguments, as the definition and the fast form receive it.
#pragma once
#include "engine/ops/attention.h"

#include <vector>

namespace masquerade::cpu {

// The query segments [first, last) of one document. A document is the unit of work: no two documents write to the same
// row.
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
    const std::vector<char>& covered;  // by query row: whether a segment holds the row

    // Throws Error if shapes or the graph do not fit. An AttentionCall is valid until its thread makes another one.
    AttentionCall(const char* op, const View& q, const Views& kv, const SegmentGraph& graph, const AttentionRule& rule,
                  const View& y, const View& lse);
};

// For every row of every key/value tensor, the first key segment that holds the row and is visited, or -1. Throws Error
// if two documents share a row: its gradients would be summed in an order that depends on the threads. Valid until the
// thread makes another one.
struct KeyOwners {
    const std::vector<int>* of[4];
    KeyOwners(const char* op, const AttentionCall& call);
};

// f64 and c128: the definition (engine/math/attention.h).
void attention_forward_reference(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_reference(const AttentionCall& call, const View& dy, const View& y, const View& lse,
                                  const Grad& dq, const Grads& dkv);
// f32 and bf16.
void attention_forward_fast(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_fast(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse,
                             const Grad& dq, const Grads& dkv);

}  // namespace masquerade::cpu

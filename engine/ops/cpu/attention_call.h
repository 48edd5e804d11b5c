// SPDX-License-Identifier: MIT
// The arguments of one attention call, after all checks, for the fast form (f32, bf16) and the definition (f64, c128).
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
    const std::vector<char>& covered;  // for each query row: whether a query segment contains it

    // Throws Error if shapes or the graph do not fit. An AttentionCall is valid until its thread makes another one.
    AttentionCall(const char* op, const View& q, const Views& kv, const SegmentGraph& graph, const AttentionRule& rule,
                  const View& y, const View& lse);
};

// For every row of every key/value tensor, the first key segment that contains the row and is seen by a query, or -1.
// Throws Error if two documents share a row, because its gradients would be summed in an order that depends on the
// threads. A KeyOwners is valid until its thread makes another one.
struct KeyOwners {
    const std::vector<int>* of[4];
    KeyOwners(const char* op, const AttentionCall& call);
};

// f64 and c128: the definition (engine/math/attention.h).
void attention_forward_reference(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_reference(const AttentionCall& call, const View& dy, const View& y, const View& lse,
                                  const Grad& dq, const Grads& dkv);
// f32 and bf16: the fast form.
void attention_forward_fast(const AttentionCall& call, const View& y, const View& lse);
void attention_backward_fast(const AttentionCall& call, const KeyOwners& owners, const View& dy, const View& lse,
                             const Grad& dq, const Grads& dkv);

}  // namespace masquerade::cpu

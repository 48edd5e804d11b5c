// SPDX-License-Identifier: MIT
// Softmax attention on the CPU: checks the arguments, then runs the fast form (for f32 and bf16) or the definition
// (for f64 and c128).
#include "engine/ops/cpu/attention_call.h"

namespace masquerade::cpu {

void attention_forward(View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse) {
    AttentionCall call("attention_forward", q, kv, graph, rule, lse, true);
    bool fast = arithmetic_of(q.dtype) == DType::f32;
    (fast ? attention_forward_fast : attention_forward_reference)(call, y, lse);
}

void attention_backward(View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph, AttentionRule rule,
                        Grad dq, Grads dkv) {
    const char* op = "attention_backward";
    AttentionCall call(op, q, kv, graph, rule, lse, false);
    check_attention_gradients(op, kv, dkv);
    KeyOwners owners(op, call);
    if (arithmetic_of(q.dtype) == DType::f32)
        attention_backward_fast(call, owners, dy, lse, dq, dkv);
    else
        attention_backward_reference(call, dy, y, lse, dq, dkv);
}

}  // namespace masquerade::cpu

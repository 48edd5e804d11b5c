// SPDX-License-Identifier: MIT
// The table of all kinds of attention.
#include "engine/nn/attention/kinds.h"

#include "engine/base/named.h"
#include "engine/ops/state_plan.h"
#include "engine/ops/whole.h"

namespace masquerade {
namespace {

std::string honours_all(const SegmentGraph&) { return ""; }

template <bool from_start>
std::string refuses_pattern(const SegmentGraph& graph) {
    return pattern_refuses(graph, from_start);
}
}  // namespace

const std::vector<AttentionKind>& attention_kinds() {
    static const std::vector<AttentionKind> all = {
        {"softmax", "every query weighs every key that it sees", true, false, honours_all, make_softmax},
        {"window", "softmax over the places nearby", true, false, refuses_pattern<false>, make_window, nullptr, false,
         "softmax"},
        {"longformer", "the same, and the first places see all and are seen", true, false, refuses_pattern<true>,
         make_longformer, nullptr, false, "softmax"},
        {"strided", "softmax over the places nearby and every l-th one", true, false, refuses_pattern<false>,
         make_strided, nullptr, false, "softmax"},
        {"fixed", "softmax over a block and the ends of all blocks", true, false, refuses_pattern<true>, make_fixed,
         nullptr, false, "softmax"},
        {"local", "softmax over a block and the one before", true, false, refuses_pattern<true>, make_local, nullptr,
         false, "softmax"},
        {"lsh", "softmax over the rows of the same bucket, in rounds of random rotations", true, false, whole_refuses,
         make_lsh},
        {"sinkhorn", "softmax over a block and the block that is sorted to it", true, false, whole_refuses,
         make_sinkhorn, nullptr, false, "softmax"},
        {"luna", "keys are packed into slots layer by layer, to which queries attend", false, false, luna_refuses,
         make_luna, "luna_causal", true},
        {"luna_causal", "keys are packed into learned slots, to which queries attend", true, false, state_refuses,
         make_luna_causal},
        {"linformer", "keys are packed by learned weights of their positions", true, true, state_refuses,
         make_linformer},
        {"performer", "a kernel of random features in place of exp(q.k)", true, false, state_refuses, make_performer},
        {"rfa", "random sines and cosines of normed queries and keys", true, false, state_refuses, make_rfa},
        {"linear", "a kernel of elu(x) + 1", true, false, state_refuses, make_linear},
        {"lambda", "keys are weighed over positions, queries read linearly", false, false, state_refuses, make_lambda},
    };
    return all;
}

const AttentionKind& find_attention(const std::string& name) {
    return find_named(attention_kinds(), name, "attention");
}

const AttentionKind& self_attention(const std::string& name, bool decoder) {
    const AttentionKind& kind = find_attention(name);
    return decoder && kind.in_decoder ? find_attention(kind.in_decoder) : kind;
}

}  // namespace masquerade

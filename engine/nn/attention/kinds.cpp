// SPDX-License-Identifier: MIT
// The table of all kinds of attention.
#include "engine/nn/attention/kernel.h"
#include "engine/nn/attention/lambda.h"
#include "engine/nn/attention/linformer.h"
#include "engine/nn/attention/lsh.h"
#include "engine/nn/attention/luna.h"
#include "engine/nn/attention/luna_causal.h"
#include "engine/nn/attention/patterns.h"
#include "engine/nn/attention/sinkhorn.h"
#include "engine/ops/state_plan.h"
#include "engine/ops/whole.h"

namespace masquerade {
namespace {

std::string honours_all(const SegmentGraph&) { return ""; }

// `which`: of a class that has several kinds.
template <class Kind, auto... which>
std::unique_ptr<const Attention> make(Parameters& parameters, const std::string& layer, const std::string& name,
                                      const AttentionShape& shape) {
    return std::make_unique<Kind>(parameters, layer, name, shape, which...);
}

template <bool from_start>
std::string refuses_pattern(const SegmentGraph& graph) {
    return pattern_refuses(graph, from_start);
}
}  // namespace

const std::vector<AttentionKind>& attention_kinds() {
    using P = PatternAttention::Kind;
    using K = KernelAttention::Kind;
    static const std::vector<AttentionKind> all = {
        {"softmax", "every query weighs every key that it sees", true, false, honours_all, make<SoftmaxAttention>},
        {"window", "softmax over the places nearby", true, false, refuses_pattern<false>, make<PatternAttention, P::window>},
        {"longformer", "the same, and the first places see all and are seen", true, false, refuses_pattern<true>, make<PatternAttention, P::longformer>},
        {"strided", "softmax over the places nearby and every l-th one", true, false, refuses_pattern<false>, make<PatternAttention, P::strided>},
        {"fixed", "softmax over a block and the ends of all blocks", true, false, refuses_pattern<true>, make<PatternAttention, P::fixed>},
        {"local", "softmax over a block and the one before", true, false, refuses_pattern<true>, make<PatternAttention, P::local>},
        {"lsh", "softmax over the rows of the same bucket, in rounds of random rotations", true, false, whole_refuses, make<LshAttention>},
        {"sinkhorn", "softmax over a block and the block that is sorted to it", true, false, whole_refuses, make<SinkhornAttention>},
        {"luna", "keys are packed into slots layer by layer, to which queries attend", false, false, luna_refuses,
         make<LunaAttention>, "luna_causal", true},
        {"luna_causal", "keys are packed into learned slots, to which queries attend", true, false, state_refuses, make<LunaCausalAttention>},
        {"linformer", "keys are packed by learned weights of their positions", true, true, state_refuses, make<LinformerAttention>},
        {"performer", "a kernel of random features in place of exp(q.k)", true, false, state_refuses, make<KernelAttention, K::performer>},
        {"rfa", "random sines and cosines of normed queries and keys", true, false, state_refuses, make<KernelAttention, K::rfa>},
        {"linear", "a kernel of elu(x) + 1", true, false, state_refuses, make<KernelAttention, K::linear>},
        {"lambda", "keys are weighed over positions, queries read linearly", false, false, state_refuses, make<LambdaAttention>},
    };
    return all;
}

const AttentionKind& find_attention(const std::string& name) {
    std::string names;
    for (const AttentionKind& kind : attention_kinds()) {
        if (kind.name == name) return kind;
        names += names.empty() ? kind.name : std::string(", ") + kind.name;
    }
    throw BadUsage(text("there is no attention ", name, "; there are ", names));
}

const AttentionKind& self_attention(const std::string& name, bool decoder) {
    const AttentionKind& kind = find_attention(name);
    return decoder && kind.in_decoder ? find_attention(kind.in_decoder) : kind;
}

}  // namespace masquerade

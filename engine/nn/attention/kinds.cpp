// SPDX-License-Identifier: MIT
// The table of all kinds of attention.
#include "engine/nn/attention/softmax.h"

namespace masquerade {
namespace {

std::string honours_all(const SegmentGraph&) { return ""; }

template <class Kind>
std::unique_ptr<const Attention> make(Parameters& parameters, const std::string& layer, const std::string& name,
                                      const AttentionShape& shape) {
    return std::make_unique<Kind>(parameters, layer, name, shape);
}

}  // namespace

const std::vector<AttentionKind>& attention_kinds() {
    static const std::vector<AttentionKind> all = {
        {"softmax", "every query weighs every key that it sees", honours_all, make<SoftmaxAttention>},
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

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The entries of attention_kinds(), and helpers to define them. To add a kind, define its constant of type
// AttentionKind in a new file of this folder, declare the constant here, and add it to the list in kinds.cpp.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

extern const AttentionKind softmax_kind, window_kind, longformer_kind, strided_kind, fixed_kind, local_kind,
    by_head_kind, lsh_kind, sinkhorn_kind, luna_kind, luna_causal_kind, linformer_kind, performer_kind, rfa_kind,
    linear_kind, lambda_kind;

// The base class of all kinds of attention. part() makes the linear layers, such as those for queries, keys and
// values.
class ProjectedAttention : public Attention {
  protected:
    ProjectedAttention(const std::string& name, const AttentionShape& shape) : name_(name), shape_(shape) {}
    // Makes a linear layer from C to `columns` columns. `what` is the last part of its parameters' path.
    Linear part(Parameters& p, const std::string& layer, const char* what, int columns) const {
        return Linear(p, layer + "." + name_ + "." + what, shape_.width, columns, shape_.deviation, shape_.bias);
    }
    std::string name_;
    AttentionShape shape_;
};

// Throws BadUsage with the message that this kind cannot generate token by token, because the keys that a row sees
// depend on later rows.
[[noreturn]] void cannot_write(const AttentionKind& kind);

// Returns the kind, with softmax attention in its place for cross-attention. Used by kinds that compute keys from the
// same rows as queries, and therefore cannot attend to an encoder.
constexpr AttentionKind with_softmax_cross(AttentionKind kind) {
    kind.in_cross = "softmax";
    return kind;
}

struct NoOptions {
    void declare(AttentionSettings&) {}
};

// Makes an entry of attention_kinds() from a class and its options.
template <class Class, class Options = NoOptions>
constexpr AttentionKind kind_of(const char* name, const char* what, bool rotates, bool drops,
                                std::string (*refuses)(const SegmentGraph&)) {
    return {name,
            what,
            rotates,
            drops,
            refuses,
            [](Parameters& p, const std::string& layer, const std::string& part, const AttentionShape& shape) {
                const auto options = options_of<Options>(shape.options);
                return std::unique_ptr<const Attention>(std::make_unique<Class>(p, layer, part, shape, options));
            },
            settings_of<Options>};
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The entries of attention_kinds(). To add a kind, write a file in this folder, and name its constant here and in
// kinds.cpp.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

extern const AttentionKind softmax_kind, window_kind, longformer_kind, strided_kind, fixed_kind, local_kind, lsh_kind,
    sinkhorn_kind, luna_kind, luna_causal_kind, linformer_kind, performer_kind, rfa_kind, linear_kind, lambda_kind;

// The base class of all kinds. It makes the linear layers for queries, keys, values and the output.
class ProjectedAttention : public Attention {
  protected:
    ProjectedAttention(const std::string& name, const AttentionShape& shape) : name_(name), shape_(shape) {}
    // Returns a linear layer with weights (columns,C).
    Linear part(Parameters& p, const std::string& layer, const char* what, int columns) const {
        return Linear(p, layer + "." + name_ + "." + what, shape_.width, columns, shape_.deviation, shape_.bias);
    }
    std::string name_;
    AttentionShape shape_;
};

// Throws BadUsage: this kind cannot generate token by token, because the keys that a row sees depend on later rows.
[[noreturn]] void cannot_write(const AttentionKind& kind);

struct NoOptions {
    void declare(AttentionSettings&) {}
};

// Makes an entry of attention_kinds() from a class and its options. Kinds with equal `weights` have the same
// parameters; null: no other kind has the same parameters.
template <class Class, class Options = NoOptions>
constexpr AttentionKind kind_of(const char* name, const char* what, bool rotates, bool drops,
                                std::string (*refuses)(const SegmentGraph&), const char* weights = nullptr) {
    return {name,
            what,
            rotates,
            drops,
            refuses,
            [](Parameters& p, const std::string& layer, const std::string& part, const AttentionShape& shape) {
                const auto options = options_of<Options>(shape.options);
                return std::unique_ptr<const Attention>(std::make_unique<Class>(p, layer, part, shape, options));
            },
            settings_of<Options>,
            weights ? weights : name};
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The rows of attention_kinds(). A kind is a file beside this one, a name here and a name in kinds.cpp.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

extern const AttentionKind softmax_kind, window_kind, longformer_kind, strided_kind, fixed_kind, local_kind, lsh_kind,
    sinkhorn_kind, luna_kind, luna_causal_kind, linformer_kind, performer_kind, rfa_kind, linear_kind, lambda_kind;

// The base of all kinds: the projections of queries, keys and values.
class ProjectedAttention : public Attention {
  protected:
    ProjectedAttention(const std::string& name, const AttentionShape& shape) : name_(name), shape_(shape) {}
    // A linear layer with weights (columns,C).
    Linear part(Parameters& p, const std::string& layer, const char* what, int columns) const {
        return Linear(p, layer + "." + name_ + "." + what, shape_.width, columns, shape_.deviation, shape_.bias);
    }
    std::string name_;
    AttentionShape shape_;
};

// Throws BadUsage, for kinds in which a row sees other keys once more rows follow.
[[noreturn]] void cannot_write(const AttentionKind& kind);

struct NoOptions {
    void declare(AttentionSettings&) {}
};

// Makes a row of the table from a class and its options. If `weights` is null, no other kind has the same parameters.
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

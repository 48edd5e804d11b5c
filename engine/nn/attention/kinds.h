// SPDX-License-Identifier: MIT
// The entries of attention_kinds(), and helpers to define them. To add a kind, define its constant of type
// AttentionKind in a new file of this folder, declare the constant here, and add it to the list in kinds.cpp.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

extern const AttentionKind softmax_kind, window_kind, longformer_kind, strided_kind, fixed_kind, local_kind,
    by_head_kind, lsh_kind, sinkhorn_kind, luna_kind, luna_causal_kind, linformer_kind, performer_kind, rfa_kind,
    linear_kind, lambda_kind;

// The constructor of a kind receives an AttentionPlace, with which it declares the parameters of one attention of a
// layer. `name` is "attention", "target_attention" or "cross". `path` is the path of the layer, then "." and `name`.
// The paths of the parameters begin with `path`, then "." and `what`.
struct AttentionPlace {
    Parameters& parameters;
    std::string path, name;
    const AttentionShape& shape;
    // Declares a linear layer from C to `columns` columns or, without `columns`, from C to C.
    Linear linear(const char* what, int columns) const {
        return Linear(parameters, path + "." + what, shape.width, columns, shape.deviation, shape.bias);
    }
    Linear linear(const char* what) const { return linear(what, shape.width); }
    Tensor* add(const char* what, const Shape& size, const Init& init) const {
        return parameters.add(path + "." + what, size, init);
    }
};

// The base class of all kinds of attention. It stores `name` and `shape` of the AttentionPlace.
class ProjectedAttention : public Attention {
  protected:
    explicit ProjectedAttention(const AttentionPlace& at) : name_(at.name), shape_(at.shape) {}
    std::string name_;
    AttentionShape shape_;
};

// Returns the kind with softmax attention as its replacement in cross-attention. Used by kinds that are only defined
// for queries and keys of the same text, and therefore cannot attend to an encoder.
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
                const AttentionPlace at{p, layer + "." + part, part, shape};
                return std::unique_ptr<const Attention>(std::make_unique<Class>(at, options));
            },
            settings_of<Options>};
}

}  // namespace masquerade

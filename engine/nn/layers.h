// SPDX-License-Identifier: MIT
// Layers: parameters, and a forward that reads like the paper. A layer owns nothing; its tensors are named slices of the
// model's Parameters, and one layer may be called any number of times in a step.
#pragma once
#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"

namespace masquerade {

struct Linear {
    Tensor *weight = nullptr, *bias = nullptr;  // (O,I), (O)
    Linear() = default;
    Linear(Parameters& p, const std::string& path, int in, int out, double deviation)
        : weight(p.add(path + ".weight", {out, in}, {Init::normal, deviation})),
          bias(p.add(path + ".bias", {out}, {Init::zeros})) {}
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const {
        return linear(tape, x, weight, bias, name);
    }
};

struct LayerNorm {
    Tensor *weight, *bias;  // (C)
    double eps;
    LayerNorm() = default;
    LayerNorm(Parameters& p, const std::string& path, int width, double epsilon)
        : weight(p.add(path + ".weight", {width}, {Init::ones})),
          bias(p.add(path + ".bias", {width}, {Init::zeros})),
          eps(epsilon) {}
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const {
        return layernorm(tape, x, weight, bias, eps, name);
    }
    // Of x + dropout(f).
    Tensor* operator()(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate,
                       const ResidualNames& names) const {
        return residual_norm(tape, x, f, rows, rate, weight, bias, eps, names);
    }
};

// The keys and values of one layer that outlive a step: x's own are written at `rows` of `own`, then all are seen.
struct LayerCache {
    Tensor* memory = nullptr;  // (B,2C), or null
    Tensor* own = nullptr;     // (slots * capacity, 2C)
    Ints rows;
};

// The rows of one pass through the stack: who they are, and what they see.
struct Pass {
    RowNames rows;                        // of x
    const SegmentGraph* graph = nullptr;  // may change from layer to layer
    Tensor* turns = nullptr;  // rotary table (P,D), or null: positions were added to the embedding
    float dropout = 0, attention_dropout = 0;
    // Only these rows go on through the layer (the others are read as keys and end here); null data: all.
    Ints query_rows;
    RowNames query_names;
    // Keys and values that need no row of x: seen as source 0, before x's own. (B,C) input of the layer, at position 0.
    Tensor* memory = nullptr;
    // Decoding: what earlier steps left. Null: the keys are those of memory and x.
    const LayerCache* cache = nullptr;
};

struct BlockShape {
    int width = 0, heads = 0, inner = 0;  // C, H, F
    bool pre_norm = false;
    GeluKind gelu = GeluKind::erf;
    double eps = 1e-12;
    double deviation = 0.02;
    bool rotary_value = false;  // a rotary table turns values as it turns keys
};

// One Transformer layer, post-LN (BERT):  x = LN1(x + Attention(x)),  x = LN2(x + FFN(x))
//                         or pre-LN:      x = x + Attention(LN1(x)),  x = x + FFN(LN2(x))
struct Block {
    BlockShape shape;
    std::string path;
    Linear query, key_value, output, up, down;
    LayerNorm norm1, norm2;
    Block(Parameters& p, const std::string& path, const BlockShape& shape);

    Tensor* operator()(Tape& tape, Tensor* x, const Pass& pass) const;
    // The keys and values (B,2C) of a memory (B,C) that stands at position 0, where the rotation is the identity.
    Tensor* memory_keys(Tape& tape, Tensor* memory) const;

  private:
    Tensor* at_positions(Tape& tape, const Linear& project, Tensor* h, Ints positions, const Pass& pass,
                         int columns, const std::string& name) const;
    std::vector<Tensor*> keys_and_values(Tape& tape, Tensor* h, const Pass& pass) const;
    Tensor* join(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, const LayerNorm& norm,
                 const ResidualNames& names) const;
    Tensor* attend(Tape& tape, Tensor* x, Tensor* h, const std::vector<Tensor*>& kv, const Pass& pass,
                   const RowNames& names) const;
};

}  // namespace masquerade

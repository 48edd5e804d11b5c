// SPDX-License-Identifier: MIT
// One Transformer layer: a norm, an attention, perhaps one to an encoder, and a feed-forward part.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

// The caches that a layer reads in place of the keys of a pass while a text is written.
struct LayerCache {
    KeyCache self, cross;
};

// The rows of one pass through a stack: their names, and what they see.
struct Pass {
    RowNames rows;                        // of x
    const SegmentGraph* graph = nullptr;  // may change from layer to layer
    Tensor* turns = nullptr;              // rotary table (P,D), or null: positions were added to the embedding
    float dropout = 0, attention_dropout = 0;
    // Only these rows go on through the layer (the others are read as keys and end here); null data: all.
    Ints query_rows;
    RowNames query_names;
    // Keys and values that need no row of x: seen as source 0, before x's own. (B,C) input of the layer, at position 0.
    Tensor* memory = nullptr;
    const LayerCache* cache = nullptr;  // null: the keys are those of the pass
    // With cross-attention: the last hidden state of an encoder (Ne,C), and which rows of it each query row sees.
    Tensor* encoder = nullptr;
    const SegmentGraph* cross_graph = nullptr;
    Ints encoder_positions;        // of the encoder's rows
    bool rotates_cross = false;    // rotary: cross-attention is rotated
    PackedRows* packed = nullptr;  // the second stream of a kind that has one
    Tensor* cross_turns() const { return rotates_cross ? turns : nullptr; }
};

struct BlockShape {
    int width = 0, heads = 0, inner = 0;  // C, H, F
    bool pre_norm = false;
    GeluKind gelu = GeluKind::erf;
    double eps = 1e-12;
    double deviation = 0.02;
    bool rotary_value = false;          // a rotary table turns values as it turns keys
    bool cross = false;                 // a decoder's layer, which attends to an encoder as well
    std::string attention = "softmax";  // a name of attention_kinds()
    AttentionOptions attention_options = {};
    int positions = 0;  // P
};

// Post-LN (BERT):  x = LN1(x + Attention(x)),  x = LN2(x + FFN(x))
// or pre-LN:       x = x + Attention(LN1(x)),  x = x + FFN(LN2(x))
// With cross-attention, between the two:  x = LNc(x + Cross(x, E))  or  x = x + Cross(LNc(x), E)   Vaswani et al. 2017
class Block {
  public:
    Block(Parameters& p, const std::string& path, const BlockShape& shape);

    // (N,C) -> (N,C), or (Nq,C) where pass.query_rows are given
    Tensor* operator()(Tape& tape, Tensor* x, const Pass& pass) const;
    const Attention& attention() const { return *attention_; }
    const Attention& cross() const { return *cross_; }
    // The tensors that a cache keeps of a memory (B,C) at position 0, and of the encoder of a pass.
    Tensor* kept_memory(Tape& tape, Tensor* memory) const;
    Tensor* kept_encoder(Tape& tape, const Pass& pass) const;

    const BlockShape shape;
    const std::string path;

  private:
    Tensor* before(Tape& tape, const LayerNorm& norm, Tensor* x, const char* name) const;
    Tensor* join(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, const LayerNorm& norm,
                 const ResidualNames& names) const;
    Tensor* attend_encoder(Tape& tape, Tensor* x, const Pass& pass, const RowNames& names) const;

    std::unique_ptr<const Attention> attention_, cross_;
    Linear up_, down_;
    LayerNorm norm1_, norm2_, norm_cross_;
};

}  // namespace masquerade

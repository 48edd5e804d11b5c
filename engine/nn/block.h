// SPDX-License-Identifier: MIT
// One Transformer layer: a norm, an attention, perhaps one to an encoder, and a feed-forward part.
#pragma once
#include "engine/nn/attention/attention.h"
#include "engine/nn/feed_forward.h"

namespace masquerade {

// The decoding state of a layer; null: none.
struct LayerState {
    std::unique_ptr<AttentionState> self, cross;
};

// The rows of one pass through a stack: their names, and what they see.
struct Pass {
    RowNames rows;                        // of x
    const SegmentGraph* graph = nullptr;  // may change from layer to layer
    Tensor* rotary_table = nullptr;       // (P,D), or null: positions were added to the embedding
    float dropout = 0, attention_dropout = 0;
    // Only these rows go on through the layer (the others are read as keys and end here); null data: all.
    Ints query_rows;
    RowNames query_names;
    // Keys and values that need no row of x: seen as source 0, before x's own. (B,C) input of the layer, at position 0.
    Tensor* memory = nullptr;
    const LayerState* state = nullptr;  // null: the keys are those of the pass
    const Step* step = nullptr;         // of writing; null: what is read becomes the memory of the state
    // With cross-attention: the last hidden state of an encoder (Ne,C), and which rows of it each query row sees.
    Tensor* encoder = nullptr;
    const SegmentGraph* cross_graph = nullptr;
    Ints encoder_positions;                       // of the encoder's rows
    bool rotates_cross = false;                   // rotary: cross-attention is rotated
    std::shared_ptr<Companion> companion;         // null: the kind has none; a decoder takes over that of its encoder
    const std::vector<int>* documents = nullptr;  // their names, for the companion
    Tensor* cross_rotary_table() const { return rotates_cross ? rotary_table : nullptr; }
};

struct BlockShape : AttentionShape {
    int inner = 0;  // F
    GeluKind gelu = GeluKind::erf;
    bool cross = false;            // a decoder's layer, which attends to an encoder as well
    std::string kind = "softmax";  // a name of attention_kinds()
    std::string ffn = "gelu";      // a name of feed_forward_kinds()
};

// Post-norm (BERT):  x = N1(x + Attention(x)),  x = N2(x + FFN(x))
// or pre-norm:       x = x + Attention(N1(x)),  x = x + FFN(N2(x))
// With cross-attention, between the two:  x = Nc(x + Cross(x, E))  or  x = x + Cross(Nc(x), E)   Vaswani et al. 2017
class Block {
  public:
    Block(Parameters& p, const std::string& path, const BlockShape& shape);

    // (N,C) -> (N,C), or (Nq,C) where pass.query_rows are given
    Tensor* operator()(Tape& tape, Tensor* x, const Pass& pass) const;
    // The decoding state of texts in these slots. Without slots, it holds only what the cross-attention reads.
    LayerState state(const Slots& slots) const;
    // The state of the pass reads its memory, or its encoder.
    void read_memory(Tape& tape, const Pass& pass) const;
    void read_encoder(Tape& tape, const Pass& pass) const;

    const BlockShape shape;
    const std::string path;

  private:
    Tensor* before(Tape& tape, const Norm& norm, Tensor* x, const char* name) const;
    Tensor* join(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, const Norm& norm,
                 const ResidualNames& names) const;
    Tensor* attend_encoder(Tape& tape, Tensor* x, const Pass& pass, const RowNames& names) const;
    static AttentionContext context(const Pass& pass, const RowNames& names, bool cross);

    std::unique_ptr<const Attention> attention_, cross_;
    std::unique_ptr<const FeedForward> ffn_;
    std::unique_ptr<const Norm> norm1_, norm2_, norm_cross_;
};

}  // namespace masquerade

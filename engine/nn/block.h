// SPDX-License-Identifier: MIT
// One Transformer layer: self-attention, in a decoder also cross-attention to an encoder, and a feed-forward part. Each
// of these parts has a norm and a residual connection.
#pragma once
#include "engine/nn/attention/attention.h"
#include "engine/nn/feed_forward.h"

namespace masquerade {

// The decoding states of a layer's self-attention and cross-attention; null: there is none.
struct LayerState {
    std::unique_ptr<AttentionState> self, cross;
};

// One pass through a stack: the names of the rows, what they see, and the decoding state.
struct Pass {
    RowNames rows;                        // names of the rows of x
    const SegmentGraph* graph = nullptr;  // mask of self-attention; may change from layer to layer
    Tensor* rotary_table = nullptr;       // (P,D); null: positions were added to the embedding
    float dropout = 0, attention_dropout = 0;
    // Only these rows of x are queries and leave the layer, with the names query_names; the other rows are only keys.
    // Null data: all rows are queries.
    Ints query_rows;
    RowNames query_names;
    // Rows (B,C) that are only keys, at position 0: source 0 of the mask, before the rows of x. Null: none.
    Tensor* memory = nullptr;
    const LayerState* state = nullptr;  // null: all keys are in the pass itself
    const Step* step = nullptr;         // decoding step; null: the keys become the memory of the state
    // For cross-attention: the last hidden state of the encoder (Ne,C), and the mask from the query rows to its rows.
    Tensor* encoder = nullptr;
    const SegmentGraph* cross_graph = nullptr;
    Ints encoder_positions;                       // positions of the encoder's rows
    bool rotates_cross = false;                   // the rotary table also rotates cross-attention
    std::shared_ptr<Companion> companion;         // null: the kind has none; a decoder receives its encoder's companion
    const std::vector<int>* documents = nullptr;  // names of the documents, for the companion
    Tensor* cross_rotary_table() const { return rotates_cross ? rotary_table : nullptr; }
};

struct BlockShape : AttentionShape {
    int inner = 0;  // F
    GeluKind gelu = GeluKind::erf;
    bool cross = false;            // the layer has cross-attention to an encoder
    std::string kind = "softmax";  // a name of attention_kinds()
    std::string ffn = "gelu";      // a name of feed_forward_kinds()
};

// Post-norm (BERT):  x = N1(x + Attention(x)),  x = N2(x + FFN(x))
// Pre-norm:          x = x + Attention(N1(x)),  x = x + FFN(N2(x))
// Cross-attention follows self-attention: x = Nc(x + Cross(x, E))  or  x = x + Cross(Nc(x), E)   Vaswani et al. 2017
class Block {
  public:
    Block(Parameters& p, const std::string& path, const BlockShape& shape);

    // x (N,C). Returns (N,C) or, if pass.query_rows is set, (Nq,C).
    Tensor* operator()(Tape& tape, Tensor* x, const Pass& pass) const;
    // Returns an empty decoding state for the texts in these slots. If there are no slots, only cross-attention has a
    // state.
    LayerState state(const Slots& slots) const;
    // Reads pass.memory into the state of self-attention, or pass.encoder into the state of cross-attention.
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

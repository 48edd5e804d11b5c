// SPDX-License-Identifier: MIT
// One Transformer layer: self-attention, cross-attention to an encoder (only in the decoder of an encoder-decoder
// model), and a feed-forward part. Each of these parts has a norm and a residual connection.
#pragma once
#include "engine/nn/attention/attention.h"
#include "engine/nn/feed_forward.h"

namespace masquerade {

// The decoding states of a layer's self-attention and cross-attention. `self` is null if state() was called with 0
// slots. `cross` is null if the layer has no cross-attention.
struct LayerState {
    std::unique_ptr<AttentionState> self, cross;
    int part = 0;  // the part of a document to which the generated rows belong: 0 for the source A, 1 for the target B
};

// The arguments of a layer besides its input rows x (N,C), such as the masks and the decoding state. A pass is one run
// of x through a stack of layers.
struct Pass {
    RowNames rows;                        // document and position of each row of x
    const SegmentGraph* graph = nullptr;  // mask of self-attention; may change from layer to layer
    // Rotary table (P,D) of make_rotary_table(), for P positions and heads of width D. Null: nothing is rotated.
    Tensor* rotary_table = nullptr;
    float dropout = 0, attention_dropout = 0;
    // query_rows lists the rows of x that are queries, and query_names their documents and positions. A layer returns
    // only these rows. All rows of x are keys. If query_rows.data is null, all rows are queries.
    Ints query_rows;
    RowNames query_names;
    // `part` is the part of a document to which all query rows belong: 0 for the source A, 1 for the target B. If the
    // pass has query rows of both parts, `parts` has the part of each query row instead. Only layers in which the
    // target's rows have another kind of attention (BlockShape::target_kind) read `part` and `parts`.
    int part = 0;
    const std::vector<char>* parts = nullptr;
    // Further rows (B,C), such as latents, which are keys but not queries, and have position 0. In the mask, the rows
    // of `memory` are key source 0 (KeySegment::source), and the rows of x are key source 1. If `memory` is null, the
    // rows of x are key source 0.
    Tensor* memory = nullptr;
    const LayerState* state = nullptr;  // decoding state; null: the pass itself contains all keys
    // The decoding step that the pass computes. If `step` is null but `state` is not, the pass precedes the first step:
    // the layers store the keys of the pass in `state` as the memory, which later steps read.
    const Step* step = nullptr;
    // For cross-attention: the output of the encoder (Ne,C), and the mask: which of these rows each query row sees.
    Tensor* encoder = nullptr;
    const SegmentGraph* cross_graph = nullptr;
    Ints encoder_positions;                // positions of the encoder's rows
    bool rotates_cross = false;            // the rotary table also rotates queries and keys of cross-attention
    std::shared_ptr<Companion> companion;  // second stream of rows, beside x (only Luna has one); null: none
    // For each document, a number that identifies the document. Dropout in the second stream derives random numbers
    // from the number of the document.
    const std::vector<int>* documents = nullptr;
    Tensor* cross_rotary_table() const { return rotates_cross ? rotary_table : nullptr; }
};

struct BlockShape : AttentionShape {
    int inner = 0;  // F, the width between the linear layers of the feed-forward part
    GeluKind gelu = GeluKind::erf;
    bool cross = false;            // the layer has cross-attention to an encoder
    std::string kind = "softmax";  // the name of an entry of attention_kinds()
    std::string ffn = "gelu";      // the name of an entry of feed_forward_kinds()
    std::string target_kind = "";  // kind of self-attention for rows of the target, a document's part B; "": `kind`
    // True if the user chose the kinds of attention separately for layers or for the parts of a document (A, B). Error
    // messages then name the layer.
    bool in_words = false;
};

// A Transformer layer (N1, N2 and Nc are norms):                                                 Vaswani et al. 2017
//     post-norm (BERT)   x = N1(x + Attention(x)),  x = N2(x + FFN(x))
//     pre-norm           x = x + Attention(N1(x)),  x = x + FFN(N2(x))
// If the target's rows have another kind of attention than the source's rows, both kinds read the keys of all rows. If
// the parameters of both kinds have the same names and shapes, the two kinds share them; otherwise, the parameters of
// the target's kind are named "target_attention". If the layer has cross-attention to the encoder's rows E, it follows
// self-attention: x = Nc(x + Cross(x, E)) in a post-norm layer, x = x + Cross(Nc(x), E) in a pre-norm layer.
class Block {
  public:
    Block(Parameters& p, const std::string& path, const BlockShape& shape);

    // Computes the layer for the rows x (N,C). Returns (N,C) or, if pass.query_rows lists Nq rows, (Nq,C).
    Tensor* operator()(Tape& tape, Tensor* x, const Pass& pass) const;
    // Returns an empty decoding state for slots.count texts. `part` is the part of a document to which the generated
    // rows belong: 0 for the source A, 1 for the target B. If slots.count is 0, self-attention gets no state.
    LayerState state(const Slots& slots, int part) const;
    // Whether a decoding step may have several rows of a text, for any rows of its slot (Attention::keeps_rows()).
    bool keeps_rows() const { return !target_ && attention_->keeps_rows(); }
    // read_memory() stores the keys and values of pass.memory in the state of self-attention. read_encoder() stores
    // the keys and values of pass.encoder in the state of cross-attention.
    void read_memory(Tape& tape, const Pass& pass) const;
    void read_encoder(Tape& tape, const Pass& pass) const;

    const BlockShape shape;
    const std::string path;

  private:
    Tensor* before(Tape& tape, const Norm& norm, Tensor* x, const char* name) const;
    Tensor* join(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, const Norm& norm,
                 const ResidualNames& names) const;
    Tensor* attend_encoder(Tape& tape, Tensor* x, const Pass& pass, const RowNames& names) const;
    Tensor* attend(Tape& tape, Queries& queries, const Keys& keys, const Pass& pass, const RowNames& names) const;
    const Attention& attention(int part) const { return part && target_ ? *target_ : *attention_; }
    void expect_support(const AttentionKind& kind, const SegmentGraph& graph) const;
    static AttentionContext context(const Pass& pass, const RowNames& names, bool cross);

    // target_ is the self-attention of the target's rows. If it is null, attention_ serves the target's rows, too.
    std::unique_ptr<const Attention> attention_, target_, cross_;
    std::unique_ptr<const FeedForward> ffn_;
    std::unique_ptr<const Norm> norm1_, norm2_, norm_cross_;
};

}  // namespace masquerade

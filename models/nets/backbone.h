// SPDX-License-Identifier: MIT
// The Transformer stack that all models consist of: embeddings, L layers, and the head of BERT's masked language model,
// which is tied to the embeddings. The mask and the positions of a pass decide whether the stack works as BERT, as a
// language model, as an encoder or as a decoder.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/nn/block.h"
#include "models/batch/rows.h"

namespace masquerade {

struct BackboneOptions {
    int vocabulary = 8000, width = 128, heads = 4, inner = 512, layers = 6;  // V, C, H, F, L
    int embedding = 0;                  // E, width of the tables and the head (0: C); if not C, a projection follows
    int head_rows = 1;                  // number of rows that the head reads side by side; 0: the head has no layers
    int types = 2;                      // segment ids are 0 .. types-1
    int positions = 512;                // P; positions are 0 .. P-1
    bool rotary = true;                 // false: a table of positions is added to the embedding
    bool rotary_value = false;          // whether values are rotated, too
    double rotary_base = 10000;         // position p rotates pair i of a head by the angle p / base^(2i/D)
    std::string attention = "softmax";  // a name of attention_kinds()
    AttentionOptions attention_options = {};  // values of attention_settings()
    bool pre_norm = false;
    std::string norm = "layer";  // a name of norm_kinds()
    std::string ffn = "gelu";    // a name of feed_forward_kinds(); the head has the same activation
    bool bias = true;            // whether linear layers and the head have biases
    bool head_bias = false;      // whether the head has biases although `bias` is false
    int kv_heads = 0;            // G, number of heads of keys and values, a divisor of H; 0: H
    GeluKind gelu = GeluKind::erf;
    double eps = 1e-12;
    double deviation = 0.02;  // standard deviation of the initial weights
    double dropout = 0, attention_dropout = 0;
    int embedding_width() const { return embedding > 0 ? embedding : width; }  // E
    int key_heads() const { return kv_heads > 0 ? kv_heads : heads; }          // G
    bool biased_head() const { return bias || head_bias; }
};

class Backbone {
  public:
    Backbone(Parameters& parameters, const BackboneOptions& options);
    // An encoder, which has no head, and a decoder, which attends to the encoder. The decoder uses the encoder's
    // embedding for its input and for prediction. The two may differ in their number of layers and inner width.
    static Backbone encoder(Parameters& parameters, const BackboneOptions& options);
    static Backbone decoder(Parameters& parameters, const BackboneOptions& options, const Backbone& encoder);

    // Returns x(N,C) = dropout(norm(token[id] + type[type] (+ position[position]))), projected if E is not C.
    Tensor* embed(Tape& tape, const TokenRows& rows) const;
    // Returns what the layers need to know about these rows. The graph must outlive the pass.
    Pass pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const;
    // Called before layer i, whose input is x. It may change x, the mask and everything else in the pass.
    using BeforeLayer = std::function<void(int i, Tensor*& x, Pass& pass)>;
    // Embeds the rows and runs the first `count` layers (-1: all). Returns (N,C). This is the only loop over layers.
    Tensor* run(Tape& tape, const TokenRows& rows, Pass pass, const BeforeLayer& before = {}, int count = -1) const;
    Tensor* run(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const {
        return run(tape, rows, pass(tape, rows, graph));
    }
    // Applies the final norm of a pre-norm stack. Other stacks have none: returns x.
    Tensor* finish(Tape& tape, Tensor* x) const;
    // Makes the decoding states of all layers.
    std::vector<LayerState> states(const Slots& slots) const;
    // Returns h(N,E) = norm(activation(dense(x))), which is multiplied by the tied embedding.
    Tensor* head(Tape& tape, Tensor* x) const;
    Tensor* word_weights() const { return token_; }   // (V,E)
    Tensor* word_bias() const { return head_bias_; }  // (V), or null
    Tensor* logits(Tape& tape, Tensor* h) const;      // (N,V), A
    // Returns (1): sum_n weight_n loss_n, with label smoothing; weights (N) are constants. `losses`, if not null,
    // receives the losses (N) for reading, without a gradient.
    Tensor* loss(Tape& tape, Tensor* h, const std::vector<int>& targets, Tensor* weights, const std::string& name,
                 Tensor** losses = nullptr, double smoothing = 0) const;
    // The mean loss of `count` tokens. `weights` (N) are 1, or 0 for padding. The results can be read until the step
    // ends.
    struct MeanLoss {
        Tensor* total;   // (1) nats per token
        Tensor* losses;  // (N)
    };
    MeanLoss mean_loss(Tape& tape, Tensor* h, const std::vector<int>& targets, std::vector<double> weights, int count,
                       double smoothing) const;
    Tensor* token_losses(Tape& tape, Tensor* h, const std::vector<int>& targets) const;  // (N), without a gradient

    // Type and device of the matrices. A tape that runs the stack must have this type, and its arena this device.
    DType storage() const { return token_->dtype; }
    Device device() const { return token_->device; }

    const BackboneOptions options;
    std::vector<Block> layers;

  private:
    // How a stack differs from the other stacks of its model: prefix of its parameter paths; the stack whose embedding
    // it shares (null: it has its own); whether it has cross-attention, and a head.
    struct Place {
        std::string prefix;
        const Backbone* embedding = nullptr;
        bool cross = false, head = true;
    };
    Backbone(Parameters& parameters, const BackboneOptions& options, const Place& place);
    void add_embedding(Parameters& parameters, const AttentionShape& attention);
    std::vector<int> names_of_documents(const TokenRows& rows, const SegmentGraph& graph) const;

    std::string prefix_;
    Tensor *token_ = nullptr, *type_ = nullptr, *position_ = nullptr;  // (V,E), (types,E), (P,E)
    std::shared_ptr<Companion> companion_;                             // null if the kind of attention has none
    std::shared_ptr<const Norm> embedding_norm_, final_norm_, head_norm_;
    Linear embedding_project_, head_dense_;
    Tensor* head_bias_ = nullptr;       // (V), or null
    std::vector<double> rotary_table_;  // (P,D)
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The one Transformer stack: embeddings, L layers, the tied head of BERT's masked language model. What it is (BERT, a
// language model, an encoder, a decoder) is decided by the mask and the positions of a pass alone.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/nn/block.h"
#include "models/batch/rows.h"

namespace masquerade {

struct BackboneOptions {
    int vocabulary = 8000, width = 128, heads = 4, inner = 512, layers = 6;  // V, C, H, F, L
    int embedding = 0;                  // E: width of the tables and the head; 0: C, else a projection E -> C follows
    int head_rows = 1;                  // that the head reads side by side; 0: it has no layers
    int types = 2;                      // segment ids 0 .. types-1 may occur
    int positions = 512;                // P: positions 0 .. P-1 may occur
    bool rotary = true;                 // else an absolute table is added to the embedding
    bool rotary_value = false;          // rotary turns values, too
    double rotary_base = 10000;         // position p turns pair i of a head by the angle p / base^(2i/D)
    std::string attention = "softmax";  // a name of attention_kinds()
    AttentionOptions attention_options = {};  // what is given of attention_settings()
    bool pre_norm = false;
    std::string norm = "layer";  // a name of norm_kinds()
    std::string ffn = "gelu";    // a name of feed_forward_kinds(); the head has its activation
    bool bias = true;            // of the linear layers and the head
    bool head_bias = false;      // of the head, if bias is false
    int kv_heads = 0;            // G, heads of keys and values, a divisor of H; 0: H
    GeluKind gelu = GeluKind::erf;
    double eps = 1e-12;
    double deviation = 0.02;  // of the first weights
    double dropout = 0, attention_dropout = 0;
    int embedding_width() const { return embedding > 0 ? embedding : width; }  // E
    int key_heads() const { return kv_heads > 0 ? kv_heads : heads; }          // G
    bool biased_head() const { return bias || head_bias; }
};

class Backbone {
  public:
    Backbone(Parameters& parameters, const BackboneOptions& options);
    // Two stacks: an encoder, which predicts nothing, and a decoder, which attends to it, and reads and predicts by the
    // encoder's embedding. They may differ in layers and inner width.
    static Backbone encoder(Parameters& parameters, const BackboneOptions& options);
    static Backbone decoder(Parameters& parameters, const BackboneOptions& options, const Backbone& encoder);

    // x(N,C) = dropout(LN(E[id] + T[type] (+ P[position]))), projected where E is not C
    Tensor* embed(Tape& tape, const TokenRows& rows) const;
    // Makes all that the layers need to know of these rows; the graph is the caller's.
    Pass pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const;
    // Called before layer i, whose input is x: it may change the rows, the mask, or what else the pass says.
    using BeforeLayer = std::function<void(int i, Tensor*& x, Pass& pass)>;
    // The only loop over layers: the embedded rows through the first `count` of them, or all. (N,C)
    Tensor* run(Tape& tape, const TokenRows& rows, Pass pass, const BeforeLayer& before = {}, int count = -1) const;
    Tensor* run(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const {
        return run(tape, rows, pass(tape, rows, graph));
    }
    // After the last layer: the final norm of a pre-norm stack, the identity otherwise.
    Tensor* finish(Tape& tape, Tensor* x) const;
    // The decoding states of all layers.
    std::vector<LayerState> states(const Slots& slots) const;
    // h(N,E): what the tied embedding meets: norm(activation(dense(x)))
    Tensor* head(Tape& tape, Tensor* x) const;
    Tensor* word_weights() const { return token_; }   // (V,E)
    Tensor* word_bias() const { return head_bias_; }  // (V), or null
    Tensor* logits(Tape& tape, Tensor* h) const;      // (N,V), A
    // (1): sum_n weight_n loss_n, weights (N) constants; `losses`, if not null, receives (N), for reading. Both by
    // labels that are smoothed.
    Tensor* loss(Tape& tape, Tensor* h, const std::vector<int>& targets, Tensor* weights, const std::string& name,
                 Tensor** losses = nullptr, double smoothing = 0) const;
    // (1) the mean of `count` tokens: `weights` (N) are 1, or 0 where nothing is asked; both may be read until the step
    // ends.
    struct MeanLoss {
        Tensor* total;   // (1) nats a token
        Tensor* losses;  // (N)
    };
    MeanLoss mean_loss(Tape& tape, Tensor* h, const std::vector<int>& targets, std::vector<double> weights, int count,
                       double smoothing) const;
    Tensor* token_losses(Tape& tape, Tensor* h, const std::vector<int>& targets) const;  // (N), for reading

    // Type and device of its matrices: a tape that runs it has this type, and that tape's arena this device.
    DType storage() const { return token_->dtype; }
    Device device() const { return token_->device; }

    const BackboneOptions options;
    std::vector<Block> layers;

  private:
    // Among the stacks of its model: in front of its paths, whose embedding it has (null: its own), what it is beside
    // layers.
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
    std::shared_ptr<Companion> companion_;                             // null: the kind has none
    std::shared_ptr<const Norm> embedding_norm_, final_norm_, head_norm_;
    Linear embedding_project_, head_dense_;
    Tensor* head_bias_ = nullptr;       // (V), or null
    std::vector<double> rotary_table_;  // (P,D)
};

}  // namespace masquerade

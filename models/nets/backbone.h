// SPDX-License-Identifier: MIT
// The Transformer stack from which all models except Flow are built: embeddings, L layers and, except in an encoder,
// the head of BERT's masked language model, whose last matrix is the token embedding (tied). The attention mask decides
// whether the stack works as BERT, as a language model, as an encoder or as a decoder.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/nn/block.h"
#include "input/lists.h"
#include "models/batch/rows.h"
#include "models/nets/attention_words.h"

namespace masquerade {

struct BackboneOptions {
    int vocabulary = 8000, width = 128, heads = 4, inner = 512, layers = 6;  // V, C, H, F and L in shapes
    // E, width of the embedding tables and of the head; 0: C, the width of the layers. If E is not C, a linear map from
    // E to C follows the embedding.
    int embedding = 0;
    // Number of hidden states that are concatenated into one input row of the head (2 in insertion models). 0: the head
    // has no dense layer and no norm.
    int head_rows = 1;
    int types = 2;               // number of segment ids, which are 0 .. types-1
    int positions = 512;         // P, number of positions, which are 0 .. P-1
    bool rotary = true;          // RoPE: queries and keys are rotated; false: learned position embeddings
    bool rotary_value = false;   // whether the rotary positions also rotate the values of attention
    double rotary_base = 10000;  // position p rotates pair i of a head of width D by the angle p / base^(2i/D)
    // Name of a kind of attention (attention_kinds()), or a text that gives layers different kinds (AttentionWords).
    std::string attention = "softmax";
    AttentionOptions attention_options = {};  // values of the settings in attention_settings()
    bool pre_norm = false;
    std::string norm = "layer";  // name of a norm (norm_kinds())
    std::string ffn = "gelu";    // name of a feed-forward part (feed_forward_kinds()); the head has the same activation
    bool bias = true;            // whether linear layers and the head have biases
    bool head_bias = false;      // whether the head has biases even if `bias` is false
    int kv_heads = 0;            // G, number of key/value heads, a divisor of `heads`; 0: equal to `heads`
    GeluKind gelu = GeluKind::erf;
    double eps = 1e-12;
    double deviation = 0.02;  // standard deviation of the initial weights
    double dropout = 0, attention_dropout = 0;
    int embedding_width() const { return embedding > 0 ? embedding : width; }  // E, the width of the embeddings
    int key_heads() const { return kv_heads > 0 ? kv_heads : heads; }          // G, the number of key/value heads
    bool biased_head() const { return bias || head_bias; }
};

class Backbone {
  public:
    Backbone(Parameters& parameters, const BackboneOptions& options);
    // encoder() makes a stack without a head. decoder() makes a stack that attends to the encoder, and that uses the
    // encoder's embedding for its input and for its predictions. The options of the decoder may differ from the
    // encoder's only in the number of layers and in the inner width.
    static Backbone encoder(Parameters& parameters, const BackboneOptions& options);
    static Backbone decoder(Parameters& parameters, const BackboneOptions& options, const Backbone& encoder);

    // Returns the input of the first layer, (N,C): N rows of width C. A row is the sum of the embeddings of its token,
    // its segment id and, if options.rotary is false, its position. A norm and dropout follow, and then a linear map to
    // the width C if the embeddings have another width.
    Tensor* embed(Tape& tape, const TokenRows& rows) const;
    // Returns what the layers need to know about `rows` (struct Pass). The mask `graph` must outlive the pass.
    Pass pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const;
    // A function that run() calls before layer i. x is the input of the layer. The function may change x, the mask and
    // everything else in the pass.
    using BeforeLayer = std::function<void(int i, Tensor*& x, Pass& pass)>;
    // Embeds the N rows and runs the first `count` layers (-1: all). Returns the output of the last layer that ran, of
    // width C: (N,C), or only the rows in pass.query_rows if `before` sets them for this layer. All models run their
    // layers with this function.
    Tensor* run(Tape& tape, const TokenRows& rows, Pass pass, const BeforeLayer& before = {}, int count = -1) const;
    Tensor* run(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const {
        return run(tape, rows, pass(tape, rows, graph));
    }
    // Applies the final norm of a pre-norm stack. Returns x itself for a post-norm stack, which has no final norm.
    Tensor* finish(Tape& tape, Tensor* x) const;
    // Returns for each layer an empty state of incremental decoding, such as an empty KV cache. `slots` describes the
    // texts that are generated in parallel. `part` is the part of a document to which the generated rows belong: 0 for
    // the source A, 1 for the target B.
    std::vector<LayerState> states(const Slots& slots, int part = 1) const;
    bool keeps_rows() const {  // Block::keeps_rows() of all layers
        return std::all_of(layers.begin(), layers.end(), [](const Block& layer) { return layer.keeps_rows(); });
    }
    // Whether at least one layer has different kinds of attention for source rows (A) and for target rows (B). If so, a
    // pass with rows of both parts must give the part of each row (Pass::parts).
    bool has_parts() const {
        return std::any_of(layers.begin(), layers.end(),
                           [](const Block& layer) { return layer.shape.kind != layer.shape.target_kind; });
    }
    // Returns h = norm(activation(dense(x))), (N,E): N rows that have the width E of the embedding. The product of h
    // with the tied embedding gives the logits.
    Tensor* head(Tape& tape, Tensor* x) const;
    Tensor* word_weights() const { return token_; }   // (V,E): the token embedding, V tokens of width E
    Tensor* word_bias() const { return head_bias_; }  // (V), the biases of the logits, or null
    // Returns V logits for each of the N rows of h, (N,V), as f32 if h is bf16. They stay readable until the end of the
    // step.
    Tensor* logits(Tape& tape, Tensor* h) const;
    // Returns one number, (1): the sum over the N rows of h of the cross-entropy loss, with label smoothing, times the
    // weight of the row in weights(N). The weights are constants. If `losses` is not null, sets it to the unweighted
    // losses (N), which have no gradient.
    Tensor* loss(Tape& tape, Tensor* h, const std::vector<int>& targets, Tensor* weights, const std::string& name,
                 Tensor** losses = nullptr, double smoothing = 0) const;
    // mean_loss() returns the mean loss of the `count` rows with a label. weights[i] is 1 if row i has a label, and 0
    // if row i is padding. Both returned tensors stay readable until the end of the training step.
    struct MeanLoss {
        Tensor* total;   // (1) mean loss in nats per label
        Tensor* losses;  // (N) unweighted loss of each row, in nats
    };
    MeanLoss mean_loss(Tape& tape, Tensor* h, const std::vector<int>& targets, Numbers weights, int count,
                       double smoothing) const;
    // Returns the loss of each of the N rows of h, without gradient.
    Tensor* token_losses(Tape& tape, Tensor* h, const std::vector<int>& targets) const;

    // Type and device of the weight matrices. A tape that runs the stack must have this type, and the arena of the tape
    // must be on this device.
    DType storage() const { return token_->dtype; }
    Device device() const { return token_->device; }

    // Returns how an arena places the tensors of steps without a backward that run this stack, such as steps of
    // decoding. With a second stream of rows (Luna), the ops of such a step depend on the lengths of the sources, so
    // the step cannot reuse memory by the lifetimes of an earlier one.
    Blocks blocks() const { return companion_ ? Blocks::kept : Blocks::reused; }

    const BackboneOptions options;
    std::vector<Block> layers;

  private:
    // Distinguishes the stacks of a model. prefix: the start of the stack's parameter paths. embedding: another
    // stack, whose embedding this stack uses; null: this stack has its own embedding. cross: whether the stack has
    // cross-attention. head: whether the stack has a head.
    struct Place {
        std::string prefix;
        const Backbone* embedding = nullptr;
        bool cross = false, head = true;
    };
    Backbone(Parameters& parameters, const BackboneOptions& options, const Place& place);
    void add_embedding(Parameters& parameters, const AttentionShape& attention);
    std::vector<int> names_of_documents(const TokenRows& rows, const SegmentGraph& graph) const;

    std::string prefix_;
    AttentionWords kinds_;
    // Embeddings of width E: (vocabulary,E), (types,E), (positions,E). position_ is null if positions are rotary.
    Tensor *token_ = nullptr, *type_ = nullptr, *position_ = nullptr;
    std::shared_ptr<Companion> companion_;  // second stream of rows beside x, which only Luna has; null: none
    std::shared_ptr<const Norm> embedding_norm_, final_norm_, head_norm_;
    Linear embedding_project_, head_dense_;
    Tensor* head_bias_ = nullptr;  // (V), the biases of the logits; null: none
    Numbers rotary_table_;         // (P,D): cosines and sines of P positions, D: width of a head; empty: no rotary
};

}  // namespace masquerade

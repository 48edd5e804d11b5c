// SPDX-License-Identifier: MIT
// UniVAE (Su 2021): a variational auto-encoder of sentences inside one Transformer, made by the mask alone.
//
// One stack of L layers reads a sentence (encoder half, full attention) and writes it again (decoder half, causal). In
// the lower k = L - K layers the halves do not see each other. At the input of each of the upper K layers the row of
// [CLS] is replaced by Out(z): the only row of the encoder half that the decoder half sees. So all the decoder learns
// about the sentence passes through K vectors z_0 .. z_{K-1} of Z numbers; z_l is drawn around In([CLS] at layer k + l).
//
// Training uses the split form: an encoder pass over real tokens through layer L-2 and a decoder pass with one key and
// value per latent layer. The joint form, both halves in one sequence under the mask of the figure, is the definition:
// tests hold the two equal with == in double. K = 0 is a plain language model.
#pragma once
#include "data/sentences.h"
#include "engine/ops/segments.h"
#include "models/nets/backbone.h"
#include "models/latent/latent.h"

namespace masquerade {

struct UniVaeOptions {
    BackboneOptions backbone;
    LatentOptions latent;
    int latent_layers = 4;  // K
    int max_length =
        32;  // of a sentence with [CLS] and [SEP]; fixed length: the decoder starts at this position
    bool free_length =
        false;  // the decoder starts at the sentence's own length instead: length becomes an input
};

// One packed batch, both halves. Documents beyond `documents` and rows beyond the real ones are inert: they fill the
// bucket, see nothing, and weigh nothing.
struct UniVaeBatch {
    TokenRows encoder, decoder, joint;
    std::vector<int> cls_rows, cls_documents, cls_positions;  // encoder rows of [CLS], one per document
    std::vector<int> joint_cls_rows;
    std::vector<int> which, joint_which;  // row -> document whose Out(z) replaces it, or -1
    std::vector<int> joint_decoder_rows;  // where the decoder rows lie in the joint form
    std::vector<int> targets;             // of the decoder rows
    std::vector<double> token_weights;    // of the decoder rows: 1, or 0 where inert
    std::vector<double> document_weights;
    std::vector<int> names;                        // of the documents
    std::vector<int> decoder_begin;                // (B+1) rows of document b: [begin[b], begin[b+1])
    SegmentGraph encoder_graph, cls_graph;         // A full; the same keys for the rows of [CLS] alone
    SegmentGraph independent_graph, latent_graph;  // B causal; B causal, sees its document's latent key first
    SegmentGraph joint_lower_graph, joint_upper_graph;
    int documents = 0, target_count = 0;  // real ones
    std::string bucket;
};

class UniVae {
  public:
    UniVae(Parameters& parameters, const UniVaeOptions& options);

    // `pad_to` > 1 rounds rows up to a multiple of it and documents to one of 8; `joint` also builds the joint form.
    UniVaeBatch batch(const std::vector<const Sentence*>& sentences, int pad_to = 1,
                      bool joint = false) const;

    // The encoder pass: the K latent samples; the mean path where `noise` is null.
    std::vector<LatentSample> encode(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise) const;
    // The decoder pass over given latents z_l (B,Z): the last hidden state of every decoder row, (N,C).
    Tensor* decode(Tape& tape, const UniVaeBatch& batch, const std::vector<Tensor*>& z) const;
    // Both halves in one sequence: the hidden state of every decoder row. Null noise: the mean path.
    Tensor* joint(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise) const;

    struct Loss {
        Tensor* total;   // (1) nats a target: reconstruction + kl_weight * KL
        Tensor* losses;  // (N) of every decoder row
        std::vector<LatentSample> latents;
    };
    Loss loss(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise, double kl_weight) const;

    // After the backward: the latents that have states change them.
    void learn(Tape& tape, const Loss& loss) const;

    int first_latent_layer() const { return options.backbone.layers - options.latent_layers; }  // k
    // Where the decoder half of a sentence of n tokens starts.
    int start_position(int n) const { return options.free_length ? n : options.max_length; }

    const UniVaeOptions options;
    Backbone backbone;
    std::vector<LatentLayer> latents;
    LatentSpace space;
};

}  // namespace masquerade

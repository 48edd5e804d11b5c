// SPDX-License-Identifier: MIT
// UniVAE (Su 2021): a variational auto-encoder of sentences that is a single Transformer with a special attention mask.
//
// One stack of L layers (counted from 0) reads a sentence (encoder half, full attention) and reconstructs it (decoder
// half, causal). In the lower k = L - K layers the halves do not see each other. At the input of each of the upper K
// layers the row of [CLS] is replaced by Out(z): the only row of the encoder half that the decoder half sees. All
// information about the sentence therefore passes through K vectors z_0 .. z_{K-1} of Z numbers; z_l is drawn around
// In([CLS] at layer k + l). The K layers with latents can also be chosen freely; in all other layers the halves do not
// see each other.
//
// Training uses the split form: an encoder pass over real tokens through layer L-2 and a decoder pass with one key and
// value per latent layer. The joint form, both halves in one sequence under one mask, is the definition: tests require
// that both forms are equal with == in double. K = 0 is a plain language model.
#pragma once
#include "engine/ops/segments.h"
#include "models/batch/batch.h"
#include "models/nets/backbone.h"
#include "models/latent/latent.h"
#include "models/masks/words.h"

namespace masquerade {

struct UniVaeOptions {
    BackboneOptions backbone;
    LatentOptions latent;
    int latent_layers = 4;          // K
    std::vector<int> latent_at;     // layers with a latent at their input, ascending; empty: the upper K layers
    std::vector<int> latent_sizes;  // Z of each latent; empty: latent.size for all
    int max_length = 32;       // maximum number of tokens, with [CLS] and [SEP]; the decoder starts at this position
    bool free_length = false;  // the decoder starts at the sentence's length instead, which thus becomes an input
    std::string mask;          // masks in words that replace the usual masks; empty: none
};

class UniVae {
  public:
    UniVae(Parameters& parameters, const UniVaeOptions& options);

    // Runs the encoder half and returns the K latent samples. If `noise` is null, these are the means.
    std::vector<LatentSample> encode(Tape& tape, const Batch& batch, const LatentNoise* noise) const;
    // Runs the decoder half for given latents z_l (B,Z). Returns the last hidden state of every decoder row, (N,C).
    Tensor* decode(Tape& tape, const Batch& batch, const std::vector<Tensor*>& z) const;
    // Runs both halves as one sequence. Returns the last hidden state of every decoder row, (N,C). If `noise` is null,
    // the latents are the means.
    Tensor* joint(Tape& tape, const Batch& batch, const LatentNoise* noise) const;

    struct Loss {
        Tensor* total;   // (1) in nats per target: reconstruction + kl_weight * KL + further losses of the latents
        Tensor* losses;  // (N) reconstruction loss of every decoder row
        std::vector<LatentSample> latents;
        Tensor* documents = nullptr;  // (B) 1, or 0 for padding; null unless the latents have states
    };
    Loss loss(Tape& tape, const Batch& batch, const LatentNoise* noise, double kl_weight) const;

    // Called after the backward pass: updates the states of the latents.
    void learn(Tape& tape, const Loss& loss) const;

    int latent_of(int layer) const;  // index of the latent at the input of a layer, or -1
    // Position of the first decoder token for a sentence of n tokens.
    int start_position(int n) const { return options.free_length ? n : options.max_length; }

    const UniVaeOptions options;                    // latent_at and latent_sizes have K entries
    const std::shared_ptr<const LayerMasks> masks;  // the masks in words, options.mask
    Backbone backbone;
    std::vector<LatentLayer> latents;
    LatentSpace space;
};

}  // namespace masquerade

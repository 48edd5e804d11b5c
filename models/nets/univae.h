// SPDX-License-Identifier: MIT
// UniVAE (Su 2021): a variational auto-encoder of sentences inside one Transformer, made by the mask alone.
//
// One stack of L layers reads a sentence (encoder half, full attention) and writes it again (decoder half, causal). In
// the lower k = L - K layers the halves do not see each other. At the input of each of the upper K layers the row of
// [CLS] is replaced by Out(z): the only row of the encoder half that the decoder half sees. So all the decoder learns
// about the sentence passes through K vectors z_0 .. z_{K-1} of Z numbers; z_l is drawn around In([CLS] at layer k +
// l).
// Latents may also stand at K layers of one's choice: the halves see nothing of each other in all others.
//
// Training uses the split form: an encoder pass over real tokens through layer L-2 and a decoder pass with one key and
// value per latent layer. The joint form, both halves in one sequence under the mask of the figure, is the definition:
// tests hold the two equal with == in double. K = 0 is a plain language model.
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
    std::vector<int> latent_at;     // the layers at whose input the latents stand, rising; empty: the upper K
    std::vector<int> latent_sizes;  // Z of each; empty: latent.size
    int max_length = 32;       // of a sentence with [CLS] and [SEP]; fixed length: the decoder starts at this position
    bool free_length = false;  // the decoder starts at the sentence's own length instead: length becomes an input
    std::string mask;          // in words, over the usual masks; empty: none
};

class UniVae {
  public:
    UniVae(Parameters& parameters, const UniVaeOptions& options);

    // The encoder pass: the K latent samples; the mean path where `noise` is null.
    std::vector<LatentSample> encode(Tape& tape, const Batch& batch, const LatentNoise* noise) const;
    // The decoder pass over given latents z_l (B,Z): the last hidden state of every decoder row, (N,C).
    Tensor* decode(Tape& tape, const Batch& batch, const std::vector<Tensor*>& z) const;
    // Both halves in one sequence: the hidden state of every decoder row. Null noise: the mean path.
    Tensor* joint(Tape& tape, const Batch& batch, const LatentNoise* noise) const;

    struct Loss {
        Tensor* total;   // (1) nats a target: reconstruction + kl_weight * KL
        Tensor* losses;  // (N) of every decoder row
        std::vector<LatentSample> latents;
        Tensor* documents = nullptr;  // (B) 1, or 0 where inert; null where no latent learns from them
    };
    Loss loss(Tape& tape, const Batch& batch, const LatentNoise* noise, double kl_weight) const;

    // After the backward: the latents that have states change them.
    void learn(Tape& tape, const Loss& loss) const;

    int latent_of(int layer) const;  // which latent stands at the input of a layer; -1: none
    // Where the decoder half of a sentence of n tokens starts.
    int start_position(int n) const { return options.free_length ? n : options.max_length; }

    const UniVaeOptions options;                    // latent_at and latent_sizes have K entries
    const std::shared_ptr<const LayerMasks> masks;  // in words
    Backbone backbone;
    std::vector<LatentLayer> latents;
    LatentSpace space;
};

}  // namespace masquerade

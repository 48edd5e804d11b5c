// SPDX-License-Identifier: MIT
// UniVAE (Su 2021): a variational auto-encoder of sentences that is a single Transformer with a special attention mask.
//
// One stack of L layers, counted from 0, reads a sentence (the encoder half, under a full mask) and reconstructs it
// (the decoder half, under a causal mask). In the lower k = L - K layers, the halves do not see each other. At the
// input of each of the upper K layers, Out(z) replaces the encoder half's row of [CLS]; z is a latent vector of Z
// numbers, and Out is a linear map. The decoder half sees this row and no other row of the encoder half. All
// information about the sentence therefore passes through the K vectors z_0 .. z_{K-1}. Let x be the row of [CLS] at
// the input of layer k + l. z_l is drawn from a distribution that In(x) determines; In is a linear map. The layers with
// latents need not be the upper K layers: they can be chosen freely. In all other layers, the halves do not see each
// other.
//
// Training uses the split form, which has two passes. The encoder pass runs the layers below the last latent (by
// default, through layer L-2). The decoder pass has one extra key and value per document in each layer with a latent.
// The joint form is the definition: both halves are one sequence, with one mask per layer. Tests require that both
// forms are equal with == in double. With K = 0, the model is a plain language model.
//
// A conditional model (Sohn, Lee & Yan 2015) reads pairs of a source and a target. Its encoder half reads both, so that
// z ~ q(z | source, target). Its decoder half has UniLM's mask on the pair: the target sees the whole source. At the
// input of each layer with a latent, Out(z) also replaces the row of [CLS] of this source. For one source, different
// samples z give different targets. With LatentOptions::source_prior, the prior p(z | source) is learned, too. It is
// computed like q(z | source, target), but from the source alone, and with a linear map Prior instead of In.
//
// The decoder half can also generate in any order (UniVaeOptions::decoder). It then has a full mask in place of the
// causal one. In insertion, it reads a canvas, [CLS] some of the words [SEP], and a head (models/nets/insertion_head.h)
// predicts the words that are missing between these words. In masked diffusion, it reads max_length - 1 places, each
// with its token or [MASK], and the row of a place predicts the token of this place.
#pragma once
#include <functional>
#include <map>

#include "engine/ops/segments.h"
#include "models/batch/batch.h"
#include "models/nets/backbone.h"
#include "models/nets/insertion_head.h"
#include "models/latent/joined_rows.h"
#include "models/latent/latent.h"
#include "models/masks/words.h"

namespace masquerade {

struct UniVaeOptions {
    BackboneOptions backbone;
    LatentOptions latent;
    int latent_layers = 4;  // K, number of layers with a latent; if latent_at is not empty, its size counts instead
    // Indices of the layers with a latent at their input, ascending; empty: the upper latent_layers layers.
    std::vector<int> latent_at;
    std::vector<int> latent_sizes;         // size Z of each latent; one number: for all; empty: latent.size for all
    std::vector<LatentKind> latent_kinds;  // the kind of each latent; empty: latent.kind for all
    int max_length = 32;                   // maximum number of tokens of a sentence, with [CLS] and [SEP]
    // Decides the position of the decoder half's first row (if conditional: of its first target row). false: the
    // position is max_length. true: it is the number of tokens of the sentence, so the decoder knows the length of the
    // sentence.
    bool free_length = false;
    bool conditional = false;  // whether the model reads pairs, and the decoder half also reads the source
    // How the decoder half generates: from left to right, by insertion of words, or by masked diffusion.
    enum class Decoder : int { causal, insertion, diffusion };
    Decoder decoder = Decoder::causal;
    InsertionHeadOptions insertion;  // options of the head that predicts insertions; used only by Decoder::insertion
    std::string mask;  // a text (LayerMasks) with masks that replace the usual masks; empty: the usual masks
};

class UniVae {
  public:
    UniVae(Parameters& parameters, const UniVaeOptions& options);

    // Runs the encoder half and returns the samples of the K latents. If `noise` is null, the samples are the means.
    // If the prior depends on the source, a second pass of the encoder half reads only the sources, and computes the
    // priors and the KLs of the samples.
    LatentSamples encode(Tape& tape, const Batch& batch, const LatentNoise* noise) const;
    // Runs the encoder half with the mean latents. Returns its last hidden states, (N,C): the output of the layer below
    // the last latent, from whose row of [CLS] this latent is computed. N is the number of encoder rows of the batch.
    Tensor* states(Tape& tape, const Batch& batch) const;
    // Only for a prior that depends on the source: samples the latents of the sources (Batch::sources) from the prior,
    // the lowest layer first. use(l, sample) returns the z of latent layer l on which the layers above depend; this is
    // usually sample.z.
    void draw(Tape& tape, const Batch& sources, const LatentNoise* noise,
              const std::function<Tensor*(int, const LatentSample&)>& use) const;
    // Runs the decoder half. `z` are the K latents, each (B,Z): Z numbers for each of B documents. Returns the last
    // hidden states of the M decoder rows with a label, (M,C), where C is the width. If the decoder half is causal and
    // the model is not conditional, every decoder row has a label. If the model inserts words, returns the states of
    // all N decoder rows, (N,C).
    Tensor* decode(Tape& tape, const Batch& batch, const std::vector<Tensor*>& z) const;
    // Runs both halves as one sequence. Returns the same rows as decode(). If `noise` is null, the latents are the
    // means.
    Tensor* joint(Tape& tape, const Batch& batch, const LatentNoise* noise) const;

    struct Loss {
        // (1) reconstruction loss + kl_weight * KL + LatentSample::loss, in nats per token of the text; if the model
        // inserts words, in nats per insertion. In masked diffusion, the reconstruction loss is the sum of the weighted
        // losses of the hidden tokens, which is in expectation a bound on -log p(x|z).
        Tensor* total;
        // (M) reconstruction loss of every label, without its weight. If the model inserts words, (B): the mean loss of
        // an insertion into the canvas of each document.
        Tensor* losses;
        LatentSamples latents;
        Tensor* documents = nullptr;  // (B) document weights: 1, or 0 for padding; null: no latent has a codebook
    };
    Loss loss(Tape& tape, const Batch& batch, const LatentNoise* noise, double kl_weight) const;

    // Some parameters of latents get initial values that depend on data (Latent::start). start() computes these values
    // from the first batch, which may be cut into parts. Call start() before the first training step.
    void start(const std::vector<Batch>& parts, const std::function<LatentNoise(const Batch&)>& noise) const;
    // For latents with a codebook: the inputs, the codes and the weights of the documents of all parts of a batch.
    struct Coded {
        std::map<std::size_t, JoinedRows> y, code;
        JoinedRows weights;
    };
    // Keeps the documents of a part in `coded`, for learn(). Call keep() after the backward pass of each part, unless
    // the batch is one part and there is one process.
    void keep(const Batch& part, const Loss& loss, Coded& coded) const;
    // Updates the states of the latents, such as codebooks, after the backward pass of all parts. Learns from the
    // documents that keep() has kept in all processes or, if keep() was not called, from those of `loss`.
    void learn(const Loss& loss, Coded& coded, std::uint64_t seed, std::uint32_t step) const;

    bool unmasks() const { return options.decoder == UniVaeOptions::Decoder::diffusion; }
    int latent_of(int layer) const;  // index of the latent at the input of a layer; -1 if the layer has no latent
    // Position of the first decoder token for a sentence of n tokens.
    int start_position(int n) const { return options.free_length ? n : options.max_length; }

    // The options of the constructor, completed: latent_layers is K, the number of latents, even if latent_at was given
    // instead; latent_at, latent_sizes and latent_kinds have one entry for each latent.
    const UniVaeOptions options;
    const std::shared_ptr<const LayerMasks> masks;  // the masks that options.mask describes
    Backbone backbone;
    const std::unique_ptr<InsertionHead> insertion;  // null if the model does not insert words
    std::vector<LatentLayer> latents;
    LatentSpace space;

  private:
    // Runs the encoder half up to the layer below the last latent. At the input of the layer with latent l, Out(z)
    // replaces the rows x(B,C) of [CLS], where z = latent(l, x). Returns the hidden states of the rows of [CLS], (B,C),
    // or, if `all_rows` is true, those of all N rows, (N,C).
    using LatentOf = std::function<Tensor*(int l, Tensor* x)>;
    Tensor* read(Tape& tape, const Batch& batch, const LatentOf& latent, bool all_rows) const;
    // Does the same, and then calls latent(l, x) for the last latent: the encoder half needs no layer above it.
    void read(Tape& tape, const Batch& batch, const LatentOf& latent) const {
        latent(options.latent_layers - 1, read(tape, batch, latent, false));
    }
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Computes the latents of sentences with a UniVAE, and fits a prior (models/density) to them.
#pragma once
#include "engine/io/checkpoint.h"
#include "models/density/prior.h"
#include "models/tasks/univae_objective.h"

namespace masquerade {

// each_batch() and each_own_batch() (objective.h) in groups of sentences_at_a_time. The batches are those of
// encoder_batch() and of halves_batch().
constexpr std::size_t sentences_at_a_time = 64;
template <class Use>
void each_batch(const UniVae& model, const Sentences& sentences, Use use) {
    each_batch(
        model.backbone, sentences, sentences_at_a_time, [&](const auto& some) { return encoder_batch(model, some); },
        use);
}
template <class Use>
void each_own_batch(const UniVae& model, const Sentences& sentences, const ObjectiveOptions& options, Use use) {
    each_own_batch(
        model.backbone, sentences, sentences_at_a_time,
        [&](const auto& some) { return halves_batch(model, some, 0, options, 1); }, use);
}

// Returns the latent vector of each sentence without noise (z = mu). A vector holds the latents of all latent layers,
// the lowest layer first. Reconstructions are decoded from these vectors.
Vectors mean_latents(const UniVae& model, const Sentences& sentences);
// Returns a draw from the posterior q(z | sentence) of each sentence. It depends on the seed and on Sentence::name.
Vectors drawn_latents(const UniVae& model, const Sentences& sentences, std::uint64_t seed);

// Only for a prior that depends on the source (LatentOptions::source_prior). Replaces the numbers [from, to) of each
// latent vector in `latents` by a draw from the prior, given the source and the latents of the layers below. normals[i]
// are numbers from a standard normal distribution, from which the draw for latents[i] is computed.
void redraw(const UniVae& model, const Sentences& sources, const Vectors& normals, int from, int to, Vectors& latents);

// Returns the sentences to whose latents a prior is fitted: at most `most` of them, drawn with `seed`. Throws BadInput
// if there is no sentence, and BadUsage if the model has no latents.
std::vector<Sentence> sentences_for_prior(const UniVae& model, const SentenceList& sentences, int most,
                                          std::uint64_t seed);

// Fits a prior to the latent vectors (mean_latents) of sentences_for_prior(). The result is bit-identical for any
// number of threads. Throws what sentences_for_prior() throws.
MixturePrior fit_prior(const UniVae& model, const SentenceList& sentences, int most, std::uint64_t seed);

}  // namespace masquerade

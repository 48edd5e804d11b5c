// SPDX-License-Identifier: MIT
// Computes the latents of sentences with a UniVAE, and fits a prior (models/density) to them.
#pragma once
#include "engine/io/checkpoint.h"
#include "models/density/prior.h"
#include "models/tasks/univae_objective.h"

namespace masquerade {

// Makes batches of 64 sentences and calls use(tape, batch, first) for each batch; `first` is the index of the batch's
// first sentence.
template <class Use>
void each_batch(const UniVae& model, const Sentences& sentences, const ObjectiveOptions& options, Use use) {
    each_batch(
        model.backbone, sentences, 64, [&](const auto& some) { return halves_batch(model, some, 0, options, 1); }, use);
}
template <class Use>
void each_batch(const UniVae& model, const Sentences& sentences, Use use) {
    each_batch(model, sentences, halves_options(model), use);
}

// Returns the latent vector of each sentence without noise (z = mu). A vector holds the latents of all latent layers,
// the lowest layer first. Reconstructions are decoded from these vectors.
std::vector<Numbers> mean_latents(const UniVae& model, const Sentences& sentences);

// Only for a prior that depends on the source (LatentOptions::source_prior). Replaces the numbers [from, to) of each
// latent vector in `latents` by a draw from the prior, given the source and the latents of the layers below. normals[i]
// are numbers from a standard normal distribution, from which the draw for latents[i] is computed.
void redraw(const UniVae& model, const std::vector<const Sentence*>& sources, const std::vector<Numbers>& normals,
            int from, int to, std::vector<Numbers>& latents);

// Returns the sentences to whose latents a prior is fitted: at most `most` of them, drawn with `seed`. Throws BadInput
// if there is no sentence, and BadUsage if the model has no latents.
std::vector<Sentence> sentences_for_prior(const UniVae& model, const SentenceList& sentences, int most,
                                          std::uint64_t seed);

// Fits a prior to the latent vectors (mean_latents) of sentences_for_prior(). The result is bit-identical for any
// number of threads. Throws what sentences_for_prior() throws.
MixturePrior fit_prior(const UniVae& model, const SentenceList& sentences, int most, std::uint64_t seed);

}  // namespace masquerade

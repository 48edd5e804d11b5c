// SPDX-License-Identifier: MIT
// Latents of sentences, and the prior of a UniVAE that is fitted to those of training.
#pragma once
#include "engine/io/checkpoint.h"
#include "models/density/prior.h"
#include "models/tasks/univae_objective.h"

namespace masquerade {

// use(tape, batch, first) for 64 sentences at a time, of which `first` is the number of the first.
template <class Use>
void each_batch(const UniVae& model, const std::vector<const Sentence*>& sentences, Use use) {
    each_batch(
        model.backbone, sentences, 64, [&](const auto& some) { return halves_batch(model, some); }, use);
}

// The latent vectors (K Z numbers each) of sentences by the mean path: what a reconstruction is written from.
std::vector<std::vector<double>> mean_latents(const UniVae& model, const std::vector<const Sentence*>& sentences);

// From at most `most` of the sentences, drawn by the seed. The same bits for any number of threads. BadInput where
// there is no sentence, BadUsage where the model has no latents.
LatentPrior fit_prior(const UniVae& model, const std::vector<Sentence>& sentences, int most, std::uint64_t seed);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The latents of sentences, and the fitted prior of a UniVAE.
#pragma once
#include "engine/io/checkpoint.h"
#include "models/density/prior.h"
#include "models/tasks/univae_objective.h"

namespace masquerade {

// Calls use(tape, batch, first) for 64 sentences at a time; `first` is the index of the batch's first sentence.
template <class Use>
void each_batch(const UniVae& model, const std::vector<const Sentence*>& sentences, Use use) {
    each_batch(
        model.backbone, sentences, 64, [&](const auto& some) { return halves_batch(model, some); }, use);
}

// Returns the latent vectors of sentences without noise (z = mu), K Z numbers each. Reconstructions are decoded from
// them.
std::vector<std::vector<double>> mean_latents(const UniVae& model, const std::vector<const Sentence*>& sentences);

// Fits the prior to at most `most` of the sentences, chosen by the seed. The result is bit-identical for any number of
// threads. Throws BadInput if there is no sentence, BadUsage if the model has no latents.
LatentPrior fit_prior(const UniVae& model, const std::vector<Sentence>& sentences, int most, std::uint64_t seed);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The fitted prior of a UniVAE: latents of training sentences, and the fit.
#pragma once
#include "models/density/prior.h"
#include "models/nets/univae.h"

namespace masquerade {

// From at most `most` of the sentences, chosen by the seed. The same bits for any number of threads. BadInput where there
// is no sentence, BadUsage where the model has no latents.
LatentPrior fit_prior(const UniVae& model, const std::vector<Sentence>& sentences, int most,
                      std::uint64_t seed);

// What says that a prior belongs to these weights.
std::uint64_t checksum_of(const Parameters& parameters);

}  // namespace masquerade

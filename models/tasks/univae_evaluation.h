// SPDX-License-Identifier: MIT
// Measures of a UniVAE on sentences it has not seen. Units: nats; a sentence's targets are its pieces and [SEP].
#pragma once
#include "models/tasks/univae_objective.h"

namespace masquerade {

// Losses per target token, the corpus over, over one posterior sample a sentence.
struct HeldOut {
    double own = 0;                   // with the sentence's own z: reconstruction
    double mean_path = 0;             // with z = mu
    double other = 0;                 // with the z of the sentence before: what z tells; NaN of one sentence
    double kl_per_token = 0, kl = 0;  // the latter a sentence
    std::vector<double> layer_kl;     // a sentence, of each latent layer
    double elbo = 0;                  // a sentence: -(reconstruction + KL), no weight on the KL
    std::int64_t sentences = 0, tokens = 0;
    std::vector<double> at_place, reach;  // the summed losses of the first, second, ... targets, and how many there are
};
HeldOut held_out_losses(const UniVae& model, const std::vector<const Sentence*>& sentences, std::uint64_t seed);

// -log p(x) of every sentence by importance sampling (Burda et al. 2015): the log of the mean over S samples of
// p(x|z) p(z) / q(z|x). An upper bound in expectation, tighter the larger S. K = 0: exact, S does not matter.
std::vector<double> importance_weighted_nll(const UniVae& model, const std::vector<const Sentence*>& sentences,
                                            int samples, std::uint64_t seed);

}  // namespace masquerade

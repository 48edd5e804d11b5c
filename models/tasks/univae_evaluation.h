// SPDX-License-Identifier: MIT
// Measures of a UniVAE on held-out sentences. Units: nats; a sentence's targets are its pieces and [SEP].
#pragma once
#include "models/tasks/univae_objective.h"

namespace masquerade {

// Losses per target token, averaged over the corpus, with one posterior sample per sentence.
struct HeldOut {
    double own = 0;                   // reconstruction loss, with the sentence's own z
    double mean_path = 0;             // reconstruction loss with z = mu
    double other = 0;                 // loss with the z of the previous sentence; NaN if there is only one sentence
    double kl_per_token = 0, kl = 0;  // KL per target token; KL per sentence
    std::vector<double> layer_kl;     // KL per sentence of each latent layer
    double elbo = 0;                  // per sentence: -(reconstruction + KL), with KL weight 1
    std::int64_t sentences = 0, tokens = 0;
    std::vector<double> at_place, reach;  // sums of the losses of all first, second, ... targets; their numbers
};
HeldOut held_out_losses(const UniVae& model, const std::vector<const Sentence*>& sentences, std::uint64_t seed);

// Estimates -log p(x) of every sentence by importance sampling (Burda et al. 2015): minus the log of the mean of
// p(x|z) p(z) / q(z|x) over samples z. The expected result is an upper bound, which is tighter for more samples. For
// K = 0 the result is exact.
std::vector<double> importance_weighted_nll(const UniVae& model, const std::vector<const Sentence*>& sentences,
                                            int samples, std::uint64_t seed);

}  // namespace masquerade

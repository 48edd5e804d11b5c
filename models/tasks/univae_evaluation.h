// SPDX-License-Identifier: MIT
// Measures of a UniVAE on held-out sentences, in nats. The target tokens of a sentence are the tokens that the decoder
// predicts: the tokens of the sentence (in a pair, of its target) and [SEP].
//
// If the model inserts words, the reconstruction loss of a sentence is estimated: it is the number of its target tokens
// times the mean loss of an insertion into one random canvas. If words are inserted from left to right, the
// expectation of the estimate is -log of the probability of this one order of insertion.
//
// In masked diffusion, the reconstruction loss of a sentence is an estimate of a bound on -log p(x|z), from as many
// canvases of the sentence as the options say. All measures use the same canvases.
#pragma once
#include "models/tasks/univae_objective.h"

namespace masquerade {

// Measures of all held-out sentences together, with one posterior sample z per sentence. own, mean_path and other are
// means per target token. If the model has no latents, mean_path and other are 0.
struct HeldOut {
    double own = 0;                   // reconstruction loss with a sample z of the sentence's posterior
    double mean_path = 0;             // reconstruction loss with the posterior's mean instead of a sample
    double other = 0;                 // reconstruction loss with the z of another sentence; NaN if there is only one
    double kl_per_token = 0, kl = 0;  // KL per target token, and per sentence
    Numbers layer_kl;                 // for each latent layer, its KL per sentence
    // Lower bound of log p(x) per sentence: -(reconstruction loss + KL). In masked diffusion, it holds in expectation.
    double elbo = 0;
    std::int64_t sentences = 0, tokens = 0;  // numbers of sentences and of target tokens
    // at_place[i]: sum of the losses of the i-th target token, counted from 0, over all sentences that have one;
    // reach[i]: number of these sentences. Both are empty if the decoder half is not causal.
    Numbers at_place, reach;
};
// `options` are those of halves_options() and what the objective of the model needs beyond them. options.seed is also
// the seed of the posterior samples. Without options, the model must be causal.
HeldOut held_out_losses(const UniVae& model, const Sentences& sentences, ObjectiveOptions options);
HeldOut held_out_losses(const UniVae& model, const Sentences& sentences, std::uint64_t seed);

// Estimates -log p(x) of every sentence by importance sampling (Burda et al. 2015). The estimate is minus the log of
// the mean of p(x|z) p(z) / q(z|x) over samples z of q. Its expected value is an upper bound of -log p(x), and the
// bound is tighter for more samples. If the model has no latents, the result is exact. The decoder half must be causal:
// p(x|z) is otherwise a sum over all orders in which the words can be written.
Numbers importance_weighted_nll(const UniVae& model, const Sentences& sentences, int samples, std::uint64_t seed);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Measures of the latents of a UniVAE, on sentences it has not seen.
#pragma once
#include "models/scoring/metrics.h"
#include "models/writing/univae_decoder.h"

namespace masquerade {

struct LatentUse {
    // units: number of latent dimensions; active: number of those whose posterior mean has a variance above 0.01.
    //                                                                                            Burda et al. 2015
    int active = 0, units = 0;
    // In nats, at most log n: the mean over n sentences x, with one sample z ~ q(z|x) each, of log q(z|x) minus the log
    // of the mean of q(z|x') over all n sentences x'. A layer is sampled given the means of the layers below.
    //                                                                                            Hoffman & Johnson 2016
    double mutual_information = 0;
};
LatentUse latent_use(const UniVae& model, const std::vector<const Sentence*>& sentences, std::uint64_t seed);

// The mean latents of layers [from, to) of a sentence A are replaced by those of the next sentence B, and the result is
// decoded. content_a and form_a: overlap of the decoded text with the text decoded for A; content_b, form_b: for B.
struct Swap {
    int from, to;
    Interval content_a, content_b, form_a, form_b;
};
struct Swaps {
    std::vector<Swap> layers;  // each layer alone; with more than two layers, then the lower and the upper half
    Interval content, form;    // baseline: the overlaps of the texts decoded for A and for B
};
Swaps swap_latents(const UniVae& model, UniVaeDecoder& decoder, const std::vector<const Sentence*>& sentences,
                   const FrequentTokens& frequent, std::uint64_t seed);

}  // namespace masquerade

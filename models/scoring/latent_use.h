// SPDX-License-Identifier: MIT
// Measures of the latents of a UniVAE, on sentences it has not seen.
#pragma once
#include "models/scoring/metrics.h"
#include "models/writing/univae_decoder.h"

namespace masquerade {

struct LatentUse {
    int active = 0,
        units = 0;  // active: dimensions whose posterior mean has a variance above 0.01      Burda et al. 2015
    // In nats: the mean of log q(z|x) - log of the mean of q(z|x') over all n sentences x', on the mean path. At most
    // log n.                                                                                     Hoffman & Johnson 2016
    double mutual_information = 0;
};
LatentUse latent_use(const UniVae& model, const std::vector<const Sentence*>& sentences, std::uint64_t seed);

// The mean latents of layers [from, to) of a sentence A are replaced by those of its neighbour B. The intervals are the
// overlaps in content and in form of the decoded text with the text decoded from A's latents, and from B's latents.
struct Swap {
    int from, to;
    Interval content_a, content_b, form_a, form_b;
};
struct Swaps {
    std::vector<Swap> layers;  // each layer alone; if there are more than two, then the lower and the upper half
    Interval content, form;    // baseline: the overlaps of the texts decoded for A and for B
};
Swaps swap_latents(const UniVae& model, UniVaeDecoder& decoder, const std::vector<const Sentence*>& sentences,
                   const FrequentTokens& frequent, std::uint64_t seed);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Measures of the latents of a UniVAE, on sentences it has not seen.
#pragma once
#include "models/scoring/metrics.h"
#include "models/writing/univae_decoder.h"

namespace masquerade {

struct LatentUse {
    int active = 0,
        units = 0;  // dimensions whose mean varies by more than 0.01 from sentence to sentence  Burda et al. 2015
    // Nats: the mean of log q(z|x) - log of the mean of q(z|x') over all sentences x', along the mean path. At most log
    // n.
    // Hoffman & Johnson 2016
    double mutual_information = 0;
};
LatentUse latent_use(const UniVae& model, const std::vector<const Sentence*>& sentences, std::uint64_t seed);

// The latents of layers [from, to) of sentence A replaced by those of its neighbour B, means both: what is written has
// so much in common, of content and of form, with what A's own latents write, and with what B's do.
struct Swap {
    int from, to;
    Interval content_a, content_b, form_a, form_b;
};
struct Swaps {
    std::vector<Swap> layers;  // each alone, then the lower and the upper half where there are more than two
    Interval content, form;    // the floor: of what A and B write
};
Swaps swap_latents(const UniVae& model, UniVaeDecoder& decoder, const std::vector<const Sentence*>& sentences,
                   const FrequentTokens& frequent, std::uint64_t seed);

}  // namespace masquerade

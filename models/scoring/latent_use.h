// SPDX-License-Identifier: MIT
// Measures of how a UniVAE uses its latents, on held-out sentences.
#pragma once
#include "models/scoring/metrics.h"
#include "models/writing/univae_decoder.h"

namespace masquerade {

struct LatentUse {
    // units: number of latent dimensions. active: number of dimensions whose posterior mean varies between the
    // sentences, with a variance above 0.01 (Burda et al. 2015).
    int active = 0, units = 0;
    // Estimate of the mutual information of a sentence and its latents, in nats; at most log n for n sentences
    // (Hoffman & Johnson 2016). For each sentence x, one z is drawn from q(z|x). The estimate is the mean over x of
    // log q(z|x) minus the log of the mean of q(z|x') over all n sentences x'. In each layer, q is computed from the
    // means of the layers below, not from samples.
    double mutual_information = 0;
};
LatentUse latent_use(const UniVae& model, const Sentences& sentences, std::uint64_t seed);

// An experiment with every sentence A and the sentence B that follows it. In the latent layers [from, to), the mean
// latents of A are replaced by the mean latents of B; the result is decoded. content_a and form_a are the overlaps of
// the decoded text with the text decoded from A's own latents. content_b and form_b are the overlaps with the text
// decoded from B's own latents.
struct Swap {
    int from, to;
    Interval content_a, content_b, form_a, form_b;
};
struct Swaps {
    std::vector<Swap> layers;  // each layer alone; if there are more than two layers, also the lower and the upper half
    Interval content, form;    // baseline: the overlaps of the texts decoded for a sentence A and for the next one, B
};
// `search` says how texts are decoded.
Swaps swap_latents(const UniVae& model, UniVaeDecoder& decoder, const Sentences& sentences,
                   const FrequentTokens& frequent, std::uint64_t seed, const SearchOptions& search = {});

}  // namespace masquerade

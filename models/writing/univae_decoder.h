// SPDX-License-Identifier: MIT
// Generates sentences from latent vectors. The encoder half is not run: the memory of a document is its K latent keys
// and values.
#pragma once
#include <vector>

#include "models/nets/univae.h"
#include "models/tasks/univae_prior.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// A request for a text: a point of the latent space, and (line, sample), which determine its random draws.
struct DecodeRequest {
    std::vector<double> latent;  // K Z numbers, layer by layer; empty for K = 0
    std::uint32_t line = 0, sample = 0;
    int start = 0;  // position of the first token; UniVae::start_position
};

class UniVaeDecoder {
  public:
    // Special tokens of the vocabulary: the start and the end of a sentence, and tokens that are never generated.
    struct Special {
        int cls = 2, sep = 3;
        std::vector<int> forbidden = {0, 2, 4};
    };
    UniVaeDecoder(const UniVae& model, Special special);

    // Returns the hypotheses of every request, at most max_length - 2 tokens each, without [CLS] and [SEP]. A
    // refinement encodes the best hypothesis of each request and decodes again: the hypothesis' mean latents replace
    // those of the request. This is like a step of Gibbs sampling between text and latents; it moves a point that
    // belongs to no sentence to the latents of a sentence. Without latents, refinements change nothing.
    //                                                                                 Rezende et al. 2014, section 3
    std::vector<std::vector<Hypothesis>> search(std::vector<DecodeRequest> requests, SearchOptions options,
                                                std::uint64_t seed, int refinements = 0);
    // Returns the best hypothesis of each request. The maximum length is the model's.
    std::vector<Tokens> write(const std::vector<DecodeRequest>& requests, SearchOptions options, std::uint64_t seed,
                              int refinements = 0);

    // Returns the logits (V) after every token of `ids` except the last (teacher forcing). For tests.
    std::vector<std::vector<double>> forced_logits(const DecodeRequest& request, const std::vector<int>& ids);

  private:
    // Computes the memory from the latents of the requests.
    void start(const DecodeRequest* requests, std::size_t count, int most_rows);

    const UniVae& model_;
    Special special_;
    CachedWriter writer_;
};

}  // namespace masquerade

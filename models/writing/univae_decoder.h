// SPDX-License-Identifier: MIT
// Writing sentences from latent vectors. No encoder token is ever run: of a document the K latent keys and values are
// the memory.
#pragma once
#include <vector>

#include "models/nets/univae.h"
#include "models/tasks/univae_prior.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// A request for a text: a point of the latent space, and the name of its random draws.
struct DecodeRequest {
    std::vector<double> latent;  // K Z numbers, layer by layer; empty for K = 0
    std::uint32_t line = 0, sample = 0;
    int start = 0;  // position of the first token; UniVae::start_position
};

class UniVaeDecoder {
  public:
    // The special tokens of the vocabulary: what begins a sentence, what ends it, what is never written.
    struct Special {
        int cls = 2, sep = 3;
        std::vector<int> forbidden = {0, 2, 4};
    };
    UniVaeDecoder(const UniVae& model, Special special);

    // For every request its hypotheses, at most max_length - 2 tokens each, without [CLS] and [SEP]. Each refinement
    // reads the best of them and writes it again: its latents by the mean path take the place of the request's. A draw
    // that no sentence has turns into one that some sentence has: one step of Gibbs sampling between text and latents.
    // Nothing changes where the model has no latents.                                         Rezende et al. 2014,
    // section 3
    std::vector<std::vector<Hypothesis>> search(std::vector<DecodeRequest> requests, SearchOptions options,
                                                std::uint64_t seed, int refinements = 0);
    // The best of each, as long as the model allows.
    std::vector<Tokens> write(const std::vector<DecodeRequest>& requests, SearchOptions options, std::uint64_t seed,
                              int refinements = 0);

    // The logits (V) after every token of a forced sentence (ids without its last token are fed): for tests.
    std::vector<std::vector<double>> forced_logits(const DecodeRequest& request, const std::vector<int>& ids);

  private:
    // Makes the memory of these latents.
    void start(const DecodeRequest* requests, std::size_t count, int most_rows);

    const UniVae& model_;
    Special special_;
    CachedWriter writer_;
};

}  // namespace masquerade

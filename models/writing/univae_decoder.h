// SPDX-License-Identifier: MIT
// Generates sentences from latent vectors with the decoder half of a UniVAE. The memory of a sentence is one row,
// made from a latent, in each of the K layers with a latent. In a conditional model, the memory of a target is its
// source; in each layer with a latent, a row made from the latent replaces the row of the source's [CLS]. If the model
// inserts words or un-hides tokens, there is no memory: every round reads the canvases and their latents anew.
#pragma once
#include "models/nets/univae.h"
#include "models/tasks/univae_prior.h"
#include "models/writing/insertion_decoder.h"
#include "models/writing/unilm_decoder.h"

namespace masquerade {

// A request for a sentence: the latents of the sentence, and two numbers on which the random draws of the search depend
// (SearchSource::line and SearchSource::sample).
struct DecodeRequest {
    Numbers latent;  // the numbers of all latents, the lowest layer first; empty if there are none
    std::uint32_t line = 0, sample = 0;
    int start = 0;       // position of the first decoder token (UniVae::start_position); ignored in a conditional model
    Tokens source = {};  // in a conditional model, the source of the pair, [CLS] .. [SEP]; otherwise empty
};

// Returns requests that reconstruct the sentences. Each request has the latents of its sentence without noise
// (mean_latents), and the index of the sentence as `line`.
std::vector<DecodeRequest> reconstructions(const UniVae& model, const Sentences& sentences, std::uint32_t sample = 0);

class UniVaeDecoder {
  public:
    // Ids of special tokens: [CLS] starts a sentence, [SEP] ends it, and the tokens in `forbidden` are never
    // generated. `mask`, the token of a hidden place, matters only in masked diffusion, and `finalization` only if the
    // model inserts words.
    struct Special {
        int cls = 2, sep = 3;
        Tokens forbidden = {0, 2, 4};
        int mask = 4;
        Finalization finalization = Finalization::slot;
    };
    UniVaeDecoder(const UniVae& model, Special special, bool graph = true);  // `graph`: CachedWriter::graph

    // Returns the hypotheses of every request, without [CLS] and [SEP]. Each hypothesis has at most max_length - 2
    // tokens, and at most options.maximum tokens. The search is repeated `refinements` times. Before each repetition,
    // the best hypothesis of each request is encoded, and its mean latents replace the latents of the request. This is
    // like a step of Gibbs sampling between text and latents. It helps if the latents are not the encoding of any
    // sentence, for example because they are random: the encoding of a sentence replaces them. If the model has no
    // latents, the search is not repeated.
    //                                                                                 Rezende et al. 2014, section 3
    std::vector<Hypotheses> search(std::vector<DecodeRequest> requests, const SearchOptions& options,
                                   std::uint64_t seed, int refinements = 0);
    // Returns the best hypothesis of each request. The maximum length is max_length - 2; options.maximum is ignored. If
    // `passes` is not null, adds Hypothesis::passes of each request to it.
    Texts write(const std::vector<DecodeRequest>& requests, SearchOptions options, std::uint64_t seed,
                int refinements = 0, Numbers* passes = nullptr);

    // Only for models that insert words or un-hide tokens: returns the texts of each request, and the round in which
    // each token was written. A text has at most options.maximum - 1 tokens, because the maximum includes [SEP].
    // Insertion writes one text for each request. It uses SearchOptions::canvas, `maximum` and `forbidden`, and throws
    // BadUsage if the options ask for beams or samples. Masked diffusion (models/writing/unmask.h) writes the samples
    // of each request or, if options.samples is 0, one text. It throws BadUsage as check_unmasking() does, and if the
    // options choose among lengths.
    std::vector<std::vector<Written>> in_any_order(const std::vector<DecodeRequest>& requests, SearchOptions options,
                                                   std::uint64_t seed);

    // Feeds `ids` one by one, whatever the model predicts (teacher forcing). Returns, after every token except the last
    // one, the logits of the next token. In a conditional model, `ids` is a target, and the result begins with the
    // logits that predict the first token of `ids`. For tests of models that do not insert words.
    Vectors forced_logits(const DecodeRequest& request, const Tokens& ids);

  private:
    // Computes the memory, the rows to which generated tokens attend, from the latents and the sources of these
    // requests. At most `most_rows` prefixes can then be generated at once.
    void start(const DecodeRequest* requests, std::size_t count, int most_rows);

    std::vector<Hypotheses> from_left_to_right(const std::vector<DecodeRequest>& requests, SearchOptions options,
                                               std::uint64_t seed);
    void read_sources(const std::vector<const DecodeRequest*>& requests, int most_rows);
    CachedWriter& writer() { return reader_ ? *reader_ : writer_; }

    const UniVae& model_;
    Special special_;
    CachedWriter writer_;
    std::unique_ptr<UniLmDecoder> reader_;  // generates in place of writer_ if the model is conditional, else null
    std::vector<Sentence> sources_;         // the sources of the requests that reader_ has read
    std::vector<int> which_;  // for each row of sources_, the index of its request if the row is [CLS], else -1
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The rules that restrict which tokens are generated for a source. apply() changes the scores of the next token by
// these rules, in the order of Hugging Face's generate: repetition penalty, no repeated n-grams, forbidden tokens,
// minimum length.
#pragma once
#include "models/writing/search.h"
#include "models/writing/token_scores.h"

namespace masquerade {

// Throw Error if the options contradict each other, or if the options or the source have a token outside the
// vocabulary, [0,V).
void check(const SearchOptions& options, int V);
void check(const SearchSource& source, const SearchOptions& options, int V);

class SearchRules {
  public:
    SearchRules(const SearchSource& source, const SearchOptions& options);

    int maximum() const { return maximum_; }
    std::size_t end_count() const { return ends_.size(); }
    // Whether a hypothesis ends if `token` is its last token and `length` is its number of tokens.
    bool ends(int token, int length) const;

    // Changes `row`, which has the score of each token of the vocabulary as the next token after the generated tokens
    // `written`. The repetition penalty applies to score - shift: to the logit if shift is 0, and to log p if shift is
    // the log-sum-exp of the logits.
    void apply(TokenScores& row, const Tokens& written, double shift) const;

  private:
    bool is_end(int token) const;
    void penalise_repetition(TokenScores& row, const Tokens& written, double shift) const;
    void forbid_ngrams(TokenScores& row, const Tokens& written) const;

    const SearchOptions& options_;
    int begin_, maximum_;
    Tokens ends_;  // the end tokens, sorted and without repetitions
};

}  // namespace masquerade

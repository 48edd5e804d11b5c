// SPDX-License-Identifier: MIT
// The rules for the next token of a source. They edit a row of scores in the order of Hugging Face's generate:
// repetition penalty, n-grams, forbidden tokens, minimum length.
#pragma once
#include <vector>

#include "models/writing/search.h"
#include "models/writing/token_scores.h"

namespace masquerade {

// These throw Error if the options contradict each other, or if the options or the source have a token outside [0,V).
void check(const SearchOptions& options, int V);
void check(const SearchSource& source, const SearchOptions& options, int V);

class SearchRules {
  public:
    SearchRules(const SearchSource& source, const SearchOptions& options);

    int maximum() const { return maximum_; }
    std::size_t end_count() const { return ends_.size(); }
    // Whether `token` ends a hypothesis of `length` tokens, including `token`.
    bool ends(int token, std::size_t length) const;

    // Edits the scores of the token that follows `written`. The repetition penalty is applied to score - shift: to log
    // p if shift is the log-sum-exp of the logits, to the logits if shift is 0.
    void apply(TokenScores& row, const std::vector<int>& written, double shift) const;

  private:
    bool is_end(int token) const;
    void penalise_repetition(TokenScores& row, const std::vector<int>& written, double shift) const;
    void forbid_ngrams(TokenScores& row, const std::vector<int>& written) const;

    const SearchOptions& options_;
    int begin_, maximum_;
    std::vector<int> ends_;  // sorted
};

}  // namespace masquerade

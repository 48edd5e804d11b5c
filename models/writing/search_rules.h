// SPDX-License-Identifier: MIT
// The rules of what a source may write next: the edits of a row of scores, in the order of Hugging Face's generate:
// repetition, n-grams, forbidden, minimum length.
#pragma once
#include <vector>

#include "models/writing/search.h"
#include "models/writing/token_scores.h"

namespace masquerade {

// Error where the options contradict each other or, with the source, name a token outside [0,V).
void check(const SearchOptions& options, int V);
void check(const SearchSource& source, const SearchOptions& options, int V);

class SearchRules {
  public:
    SearchRules(const SearchSource& source, const SearchOptions& options);

    int maximum() const { return maximum_; }
    std::size_t end_count() const { return ends_.size(); }
    // Whether a hypothesis of `length` tokens ends with this one.
    bool ends(int token, std::size_t length) const;

    // Edits the row after `written`. The penalty acts on score - shift: on log p where shift is the log sum
    // exp of the logits, on the logits where it is 0.
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

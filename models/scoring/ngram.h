// SPDX-License-Identifier: MIT
// An n-gram language model over the symbols 0 .. V-1 with interpolated modified Kneser-Ney smoothing: Chen & Goodman
// 1999, "An empirical study of smoothing techniques for language modeling".
//
//   p(w|h) = (c(hw) - D(c(hw))) / sum_v c(hv)  +  gamma(h) p(w|h')      h': the context h without its first symbol
//   gamma(h) = sum_v D(c(hv)) / sum_v c(hv)                             1 if h was never seen
//
// D is the discount. In the highest order, the count c(hw) is the number of occurrences of hw in the text; in lower
// orders, it is the number of different symbols that precede hw. An n-gram that starts with begin() has no predecessor,
// so its count is its number of occurrences. The order 0 is uniform: 1 / (V + 1) for every symbol and for end(). KenLM
// (Heafield et al. 2013) uses the same formulas, so perplexities are comparable.
#pragma once
#include <array>
#include <string_view>

#include "data/sentences.h"

namespace masquerade {

class Ngram {
  public:
    // Sentences are given without begin() and end(), which the constructor adds. If there are no sentences, all symbols
    // are equally likely.
    Ngram(int order, int vocabulary, const Texts& sentences);

    Ngram(const Ngram&) = delete;
    Ngram& operator=(const Ngram&) = delete;

    int order() const { return int(levels_.size()) - 1; }
    int end() const { return vocabulary_; }
    int begin() const { return vocabulary_ + 1; }

    // Returns p(symbol | context), which is above 0. A context may start with begin(). Only the last order() - 1
    // symbols of a context matter.
    double probability(const Tokens& context, int symbol) const;

    // Returns log p, in nats, of each symbol of a sentence given the preceding symbols, followed by log p of end().
    Numbers log_probabilities(const Tokens& sentence) const;

    // The discounts D for n-grams of the given order: for the count 1, for the count 2, and for counts of 3 or more.
    // They are estimated from the numbers of n-grams with the counts 1, 2, 3 and 4. If one of these numbers is 0, or if
    // an estimate is not positive, the text is too small for an estimate. The discounts are then 0.5, 1 and 1.5, as in
    // KenLM.
    using Discounts = std::array<double, 3>;
    const Discounts& discounts(int order) const { return levels_.at(order).discounts; }

  private:
    struct Gram {
        std::u32string_view text;  // the symbols of the n-gram; points into text_
        double count = 0;          // the count c(hw) of the n-gram hw, see the formulas at the top of this file
        double probability = 0;    // p of the last symbol, given the symbols before it
        double gamma = 1;          // gamma(h) if this n-gram is the context h, see the formulas at the top of this file
        Gram* suffix = nullptr;    // the n-gram without its first symbol
    };
    struct Level {
        std::vector<Gram> grams;  // the n-grams of one order n, sorted by their symbols
        Discounts discounts = {0.5, 1, 1.5};
    };

    std::u32string marked(const Tokens& sentence) const;
    void count();
    static void set_discounts(Level& level);
    static void set_probabilities(Level& above, Level& level);
    double of_last(std::u32string_view gram) const;
    void check(int symbol, int last) const;

    int vocabulary_;
    std::u32string text_;        // all sentences, with begin() and end()
    std::vector<Level> levels_;  // indexed by order; order 0 has only the empty n-gram
};

}  // namespace masquerade

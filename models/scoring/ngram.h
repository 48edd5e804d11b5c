// SPDX-License-Identifier: MIT
// An n-gram language model over the symbols 0 .. V-1 with interpolated modified Kneser-Ney smoothing: Chen & Goodman
// 1999, "An empirical study of smoothing techniques for language modeling".
//
//   p(w|h) = (c(hw) - D(c(hw))) / sum_v c(hv)  +  gamma(h) p(w|h')      h': h without its first symbol
//   gamma(h) = sum_v D(c(hv)) / sum_v c(hv)                             1 if h was never seen
//
// In the highest order c(hw) is the number of occurrences of hw; in lower orders it is the number of different symbols
// that precede hw. An n-gram that starts with begin() has no predecessor and keeps its number of occurrences. The
// order 0 is uniform: 1 / (V + 1) for every symbol and for the end. All of this is as in KenLM (Heafield et al. 2013),
// so perplexities are comparable.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace masquerade {

class Ngram {
  public:
    // Sentences are given without begin() and end(), which the constructor adds. If there are no sentences, all symbols
    // are equally likely.
    Ngram(int order, int vocabulary, const std::vector<std::vector<int>>& sentences);

    int order() const { return int(levels_.size()) - 1; }
    int end() const { return vocabulary_; }
    int begin() const { return vocabulary_ + 1; }

    // p(symbol | context) > 0. A context may start with begin(); only its last order - 1 symbols matter.
    double probability(const std::vector<int>& context, int symbol) const;

    // log p, in nats, of each symbol of a sentence given the preceding ones, followed by log p of end().
    std::vector<double> log_probabilities(const std::vector<int>& sentence) const;

    // The discounts D for the counts 1, 2, and 3 or more in this order, estimated from the numbers of n-grams with the
    // counts 1, 2, 3 and 4. If one of these numbers is 0 or an estimate is not positive, the text is too small, and the
    // discounts are 0.5, 1, 1.5, as in KenLM.
    using Discounts = std::array<double, 3>;
    const Discounts& discounts(int order) const { return levels_.at(std::size_t(order)).discounts; }

  private:
    using Index = std::uint32_t;

    // The n-grams of one order, sorted: a level of a trie. N-grams that differ only in the last symbol are adjacent.
    struct Level {
        std::vector<int> symbol;         // last symbol of each n-gram
        std::vector<Index> first_child;  // index of the first child in the next level; last entry: size of that level
        std::vector<Index> suffix;       // index in the level below of the n-gram without its first symbol
        std::vector<double> count;       // c; freed once the probabilities are computed
        std::vector<double> probability, gamma;
        Discounts discounts{};
    };
    // A node of the trie: the longest known context that is a suffix of the history.
    struct Place {
        std::size_t order = 0;
        Index index = 0;
    };
    static constexpr Index none = ~Index(0);

    std::vector<int> marked_text(const std::vector<std::vector<int>>& sentences) const;
    void count(const std::vector<int>& text);
    void link();
    void count_what_precedes();
    void set_discounts();
    void set_probabilities();
    Index child(const Place& parent, int symbol) const;
    double advance(Place& place, int symbol) const;
    void check(int symbol, int last) const;

    int vocabulary_;
    std::vector<Level> levels_;  // indexed by order; order 0 has only the empty n-gram
};

}  // namespace masquerade

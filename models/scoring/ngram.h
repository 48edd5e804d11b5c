// SPDX-License-Identifier: MIT
// An n-gram language model over the symbols 0 .. V-1, interpolated modified Kneser-Ney: Chen & Goodman 1999,
// "An empirical study of smoothing techniques for language modeling", the modified form of Kneser-Ney.
//
//   p(w|h) = (c(hw) - D(c(hw))) / sum_v c(hv)  +  gamma(h) p(w|h')      h': h without its first symbol
//   gamma(h) = sum_v D(c(hv)) / sum_v c(hv)                             1 where h was never seen
//
// In the highest order c(hw) is how often hw occurs; below, how many different symbols it follows. An n-gram
// that begins a sentence follows nothing and keeps its number of occurrences. Below the first order every
// symbol has 1 / (V + 1), the end among them. In all this as KenLM (Heafield et al. 2013), so that
// perplexities compare.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace masquerade {

class Ngram {
  public:
    // A sentence is symbols without marks: begin() and end() are set around it. Without any sentence all
    // symbols are equally likely.
    Ngram(int order, int vocabulary, const std::vector<std::vector<int>>& sentences);

    int order() const { return int(levels_.size()) - 1; }
    int end() const { return vocabulary_; }
    int begin() const { return vocabulary_ + 1; }

    // p(symbol | context), above 0. A context may start with begin(); its last order - 1 symbols count.
    double probability(const std::vector<int>& context, int symbol) const;

    // log p, in nats, of each symbol of a sentence after those before it, and of its end: one number more.
    std::vector<double> log_probabilities(const std::vector<int>& sentence) const;

    // What D takes off a count of 1, of 2, and of 3 or more in this order, by how many n-grams occur 1, 2, 3
    // and 4 times. Where there is none of one of these, or a result is not above 0, the text is too small to
    // tell: then 0.5, 1, 1.5, as in KenLM.
    using Discounts = std::array<double, 3>;
    const Discounts& discounts(int order) const { return levels_.at(std::size_t(order)).discounts; }

  private:
    using Index = std::uint32_t;

    // The n-grams of one order, sorted: a trie. Those that share all but the last symbol are neighbours.
    struct Level {
        std::vector<int> symbol;         // the last one
        std::vector<Index> first_child;  // among the n-grams of the next order; one entry more, the end
        std::vector<Index> suffix;       // the n-gram without its first symbol, one order below
        std::vector<double> count;       // c; emptied when the probabilities are made
        std::vector<double> probability, gamma;
        Discounts discounts{};
    };
    // A node of the trie: the longest known context that a history ends with.
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
    std::vector<Level> levels_;  // by order; 0 holds the empty n-gram
};

}  // namespace masquerade

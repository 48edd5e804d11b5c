// SPDX-License-Identifier: MIT
// Two baselines without learning for generators that read a source: the start of the source, and the target of the most
// similar training source.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/scoring/word_model.h"

namespace masquerade {

// Returns the first n words of a line, unchanged, joined by one space. Words are separated by white space.
std::string first_words(std::string_view line, std::size_t n = 9);

// Returns the first n characters of a line that are not white space: for Chinese, which has no spaces between words.
std::string first_characters(std::string_view line, std::size_t n = 9);

// Finds the training source that is most similar to a source: the highest cosine of their tf-idf vectors.
//
//   v(s)[w]   = tf(s, w) * (1 + ln((1 + N) / (1 + df(w))))
//   cos(s, t) = v(s) . v(t) / (|v(s)| |v(t)|)                  0 if a vector is 0
//
// tf(s, w): number of occurrences of word w in s; df(w): number of the N training sources that have w. Words are those
// of WordTable, lower-cased; words that no training source has are ignored. (Salton & Buckley 1988; the smoothing of
// the logarithm is scikit-learn's.)
class NearestSource {
  public:
    explicit NearestSource(const std::vector<std::string>& sources);  // at least one source
    NearestSource(const NearestSource&) = delete;
    NearestSource& operator=(const NearestSource&) = delete;

    struct Found {
        std::size_t index;  // index of the training source; the lowest index of a tie
        double cosine;      // 0..1
    };
    Found find(std::string_view source);

  private:
    using Bag = std::vector<std::pair<int, double>>;  // (word, count), in ascending order of words
    Bag read(std::string_view line);
    double length_of(const Bag& bag) const;  // |v| of the bag's vector

    WordTable table_;
    // A source that contains a given word, and the word's weight in the normalised vector of this source.
    struct Place {
        std::uint32_t source;
        double weight;
    };
    std::vector<double> idf_;                  // per word of the training sources
    std::vector<std::vector<Place>> sources_;  // per word, in ascending order of the source
    std::vector<double> cosines_;              // per source, for the current query
};

}  // namespace masquerade

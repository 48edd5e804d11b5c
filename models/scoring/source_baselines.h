// SPDX-License-Identifier: MIT
// Two baselines for generators that read a source; both have learned nothing: the start of the source,
// and the target of the most similar training source.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/scoring/word_model.h"

namespace masquerade {

// The first n words of a line, as they are written, with one space between. Words are what white space parts.
std::string first_words(std::string_view line, std::size_t n = 9);

// The first n characters of a line that are not white space: for Chinese, whose words nothing parts.
std::string first_characters(std::string_view line, std::size_t n = 9);

// Finds the training source that is most similar to a source: the highest cosine of their tf-idf vectors.
//
//   v(s)[w]   = tf(s, w) * (1 + ln((1 + N) / (1 + df(w))))
//   cos(s, t) = v(s) . v(t) / (|v(s)| |v(t)|)                  0 where a vector is 0
//
// tf(s, w): how often word w occurs in s; df(w): how many of the N training sources have it. Words are those
// of WordTable, lower-cased; ones that no training source has count for nothing. (Salton & Buckley 1988; the
// logarithm's smoothing is scikit-learn's.)
class NearestSource {
  public:
    explicit NearestSource(const std::vector<std::string>& sources);  // at least one
    NearestSource(const NearestSource&) = delete;
    NearestSource& operator=(const NearestSource&) = delete;

    struct Found {
        std::size_t index;  // of the training source; the lowest of those that are equally similar
        double cosine;      // 0..1
    };
    Found find(std::string_view source);

  private:
    using Bag = std::vector<std::pair<int, double>>;  // words in rising order, and their numbers of occurrences
    Bag read(std::string_view line);
    double length_of(const Bag& bag) const;  // of its vector

    WordTable table_;
    // The sources that have a word, in rising order, and its weight in the vector of each, which has length 1.
    struct Place {
        std::uint32_t source;
        double weight;
    };
    std::vector<double> idf_;                  // by word of the training sources
    std::vector<std::vector<Place>> sources_;  // by word, too
    std::vector<double> cosines_;              // by source; of the query at hand
};

}  // namespace masquerade

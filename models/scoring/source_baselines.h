// SPDX-License-Identifier: MIT
// Two baselines without learning for models that generate a target from a source: the start of the source, and the
// target of the most similar training source.
#pragma once
#include "models/scoring/word_model.h"

namespace masquerade {

// Returns the first n words of a line (words_of), joined by single spaces.
std::string first_words(std::string_view line, std::size_t n = 9);

// Returns the first n characters of a line that are not white space. This is for Chinese, which has no spaces between
// words.
std::string first_characters(std::string_view line, std::size_t n = 9);

// Finds the training source that is most similar to a given source. The similarity is the cosine of the two tf-idf
// vectors (Salton & Buckley 1988), with scikit-learn's smoothed idf factor:
//
//   v(s)[w]   = tf(s, w) * (1 + ln((1 + N) / (1 + df(w))))
//   cos(s, t) = v(s) . v(t) / (|v(s)| |v(t)|)                  0 if a vector is 0
//
// tf(s, w) is the number of times that the word w occurs in s. N is the number of training sources; df(w) is the number
// of training sources that contain w. Words are the lower-cased words of WordTable. Words that no training source
// contains are ignored.
class NearestSource {
  public:
    explicit NearestSource(const Strings& sources);  // there must be at least one source
    NearestSource(const NearestSource&) = delete;
    NearestSource& operator=(const NearestSource&) = delete;

    struct Found {
        std::size_t index;  // index of the most similar training source; the lowest if several are equally similar
        double cosine;      // 0..1
    };
    Found find(std::string_view source);

  private:
    using Bag = std::vector<std::pair<int, double>>;  // (word, count), in ascending order of words
    Bag read(std::string_view line);
    double length_of(const Bag& bag) const;  // |v|, the norm of the tf-idf vector of a line with these words

    WordTable table_;
    // A training source that contains a given word, and the word's entry in the source's vector v / |v|.
    struct Place {
        std::uint32_t source;
        double weight;
    };
    // For each word w, the idf factor in the formula of v(s)[w]: 1 + ln((1 + N) / (1 + df(w))).
    Numbers idf_;
    std::vector<std::vector<Place>> sources_;  // for each word, the sources that contain it, in ascending order
    Numbers cosines_;                          // in find(): the cosine of `source` and each training source
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// How much two sentences have in common in content and in form. Content are the tokens outside the most frequent ones; form is the
// sequence of the others, where each run of content is one mark.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "data/sentences.h"

namespace masquerade {

using FrequentTokens = std::set<int>;
// The `count` tokens that occur most often in these sentences, [CLS] and [SEP] left out; of equals the smaller ids.
FrequentTokens most_frequent(const std::vector<Sentence>& sentences, int count);

// F1, 0..1, of content as multisets; 1 where neither has any.
double content_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent);
// F1, 0..1, of the longest common subsequence of both forms; 1 where both are empty.
double form_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent);

// A mean with the interval that holds 95 % of the means of 1,000 draws with replacement.            Efron 1979
struct Interval {
    double mean = 0, low = 0, high = 0;
};
Interval bootstrap(const std::vector<double>& values, std::uint64_t seed);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// How close one sequence of tokens is to another.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "data/sentences.h"

namespace masquerade {

using NgramCounts = std::map<Tokens, int>;

// Returns the n-grams of a sequence with their counts.
NgramCounts ngrams(const Tokens& tokens, int n);

// Number of n-grams that both sequences contain; each counts with the smaller of its two counts (BLEU's clipped
// matches).
int shared(const NgramCounts& a, const NgramCounts& b);

// The length of the longest common subsequence.
int longest_common(const Tokens& a, const Tokens& b);

// Corpus BLEU of n-grams up to 4: Papineni et al. 2002. It is 0 if no token matches or if the hypotheses have no n-gram
// of some order. If an order has n-grams but no match, BLEU is 0 too, unless `smoothed`: then the k-th such order
// counts as 2^-k matches (Chen & Cherry 2014, method 3).
struct Bleu {
    double score = 0;                   // 0..100
    std::array<double, 4> precision{};  // for orders 1 to 4; 0..100
    double brevity = 0;                 // brevity penalty, 0..1; below 1 if hypotheses are shorter than references
    long hypothesis_tokens = 0, reference_tokens = 0;
};
Bleu bleu(const std::vector<Tokens>& references, const std::vector<Tokens>& hypotheses, bool smoothed);

// Measures over a whole corpus of pairs (reference, hypothesis).
struct Closeness {
    double exact = 0;           // share of pairs that are equal
    double token_accuracy = 0;  // share of reference tokens that the hypothesis has at the same index
    double bleu4 = 0;           // 0..100, not smoothed
    double edits = 0;           // edit distance in tokens / number of reference tokens          Levenshtein 1966
};

Closeness compare(const std::vector<Tokens>& references, const std::vector<Tokens>& hypotheses);

// Number of distinct n-grams divided by the number of all n-grams of the corpus.        Li et al. 2016
double distinct(const std::vector<Tokens>& corpus, int n);

// The overlap of two sentences in content and in form. The content is the tokens that are not frequent. The form is the
// sequence of the frequent tokens, in which a placeholder stands for each run of content tokens.
using FrequentTokens = std::set<int>;
// Returns the `count` most frequent tokens of the sentences, without [CLS] and [SEP]; ties go to smaller ids.
FrequentTokens most_frequent(const std::vector<Sentence>& sentences, int count);

// F1, 0..1, of the content as multisets; 1 if neither sentence has content.
double content_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent);
// F1, 0..1, of the longest common subsequence of the forms; 1 if both forms are empty.
double form_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent);

// A mean with its 95 % bootstrap interval, from the means of 1,000 resamples with replacement.      Efron 1979
struct Interval {
    double mean = 0, low = 0, high = 0;
};
Interval bootstrap(const std::vector<double>& values, std::uint64_t seed);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Measures of sequences of tokens: how close one sequence is to another, how varied a corpus is, and the confidence
// interval of a mean.
#pragma once
#include <array>
#include <map>
#include <set>

#include "data/sentences.h"

namespace masquerade {

using NgramCounts = std::map<Tokens, int>;

// Returns the n-grams of a sequence with their counts.
NgramCounts ngrams(const Tokens& tokens, int n);

// Returns the number of n-grams that two sequences share. An n-gram that occurs a times in one sequence and b times in
// the other counts min(a, b) times (BLEU's clipped matches).
int shared(const NgramCounts& a, const NgramCounts& b);

// Returns the length of the longest common subsequence.
int longest_common(const Tokens& a, const Tokens& b);

// Corpus BLEU with n-grams of the orders 1 to 4 (Papineni et al. 2002). It is 0 if no token matches, or if no
// hypothesis has 4 tokens or more. If the hypotheses have n-grams of an order but none matches, the result depends on
// `smoothed`. If `smoothed` is false, BLEU is 0. If `smoothed` is true, the number of matches is set to 1/2 for the
// first order without a match, 1/4 for the second, and so on (Chen & Cherry 2014, method 3).
struct Bleu {
    double score = 0;                   // 0..100
    std::array<double, 4> precision{};  // precision of the n-grams of order 1, 2, 3, 4; 0..100
    double brevity = 0;                 // brevity penalty, 0..1; below 1 if hypotheses are shorter than references
    long hypothesis_tokens = 0, reference_tokens = 0;
};
Bleu bleu(const Texts& references, const Texts& hypotheses, bool smoothed);

// Measures over pairs of a reference and a hypothesis.
struct Closeness {
    double exact = 0;           // share of the hypotheses that equal their reference, 0..1
    double token_accuracy = 0;  // share of the reference tokens that the hypothesis has at the same index, 0..1
    double bleu4 = 0;           // 0..100, not smoothed
    double edits = 0;           // edit distance in tokens / number of reference tokens          Levenshtein 1966
};

Closeness compare(const Texts& references, const Texts& hypotheses);

// Returns the number of different n-grams of the corpus divided by the number of all its n-grams (Li et al. 2016), or 0
// if the corpus has no n-grams.
double distinct(const Texts& corpus, int n);

// Two sentences can overlap in content and in form. The content of a sentence consists of its tokens that are not
// frequent. Its form is the sentence with each run of adjacent content tokens replaced by one placeholder.
using FrequentTokens = std::set<int>;
// Returns the `count` most frequent tokens of the sentences, without [CLS] and [SEP]. Among equally frequent tokens,
// the smaller id comes first.
FrequentTokens most_frequent(const std::vector<Sentence>& sentences, int count);

// Returns the F1 score, 0..1, of the content tokens that two sentences share, counted with repetition; 1 if neither
// sentence has content.
double content_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent);
// Returns the F1 score, 0..1, of the longest common subsequence of the two forms; 1 if both forms are empty.
double form_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent);

// The mean of some values and its 95 % bootstrap interval (Efron 1979): 95 % of the means of 1,000 resamples of the
// values, drawn with replacement, lie between `low` and `high`. If `counts` is given, the mean is the sum of the values
// divided by the sum of their counts; a resample draws a value together with its count. Resamples whose counts are all
// 0 have no mean and are left out. If the mean of the values is not finite, `low` and `high` are equal to it.
struct Interval {
    double mean = 0, low = 0, high = 0;
};
Interval bootstrap(const Numbers& values, std::uint64_t seed, const Numbers& counts = {});

}  // namespace masquerade

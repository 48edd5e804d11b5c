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

// The n-grams of a sequence, and how often each occurs.
NgramCounts ngrams(const Tokens& tokens, int n);

// How many n-grams two sequences share: each as often as it occurs in both. BLEU's clipped matches.
int shared(const NgramCounts& a, const NgramCounts& b);

// The length of the longest common subsequence.
int longest_common(const Tokens& a, const Tokens& b);

// Corpus BLEU of n-grams up to 4: Papineni et al. 2002. It is 0 where no token matches, or where the hypotheses have no
// n-gram of some order. `smoothed`: of the other orders without matches the k-th counts 2^-k matches (Chen & Cherry
// 2014, method 3); else one of them makes it 0.
struct Bleu {
    double score = 0;                   // 0..100
    std::array<double, 4> precision{};  // by order, from 1; 0..100
    double brevity = 0;                 // the penalty, 0..1; below 1 where hypotheses are shorter than references
    long hypothesis_tokens = 0, reference_tokens = 0;
};
Bleu bleu(const std::vector<Tokens>& references, const std::vector<Tokens>& hypotheses, bool smoothed);

// Counted over a whole corpus of pairs (reference, hypothesis).
struct Closeness {
    double exact = 0;           // share of pairs that are equal
    double token_accuracy = 0;  // share of reference tokens met at their own place
    double bleu4 = 0;           // 0..100, not smoothed
    double edits = 0;  // tokens put in, taken out or changed, over the references' tokens       Levenshtein 1966
};

Closeness compare(const std::vector<Tokens>& references, const std::vector<Tokens>& hypotheses);

// Different n-grams over all n-grams of the corpus.                                     Li et al. 2016
double distinct(const std::vector<Tokens>& corpus, int n);

// How much two sentences have in common in content and in form. Content are the tokens outside the most frequent ones;
// form is the sequence of the others, where each run of content is one mark.
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

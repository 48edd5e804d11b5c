// SPDX-License-Identifier: MIT
// How close one sequence of tokens is to another.
#pragma once
#include <map>
#include <vector>

#include "data/sentences.h"

namespace masquerade {

using NgramCounts = std::map<Tokens, int>;

// The n-grams of a sequence, and how often each occurs.
NgramCounts ngrams(const Tokens& tokens, int n);

// How many n-grams two sequences share: each as often as it occurs in both. BLEU's clipped matches.
int shared(const NgramCounts& a, const NgramCounts& b);

// Counted over a whole corpus of pairs (reference, hypothesis).
struct Closeness {
    double exact = 0;           // share of pairs that are equal
    double token_accuracy = 0;  // share of reference tokens met at their own place
    double bleu4 = 0;           // 0..100, corpus BLEU over tokens: Papineni et al. 2002
};

Closeness compare(const std::vector<Tokens>& references, const std::vector<Tokens>& hypotheses);

// Different n-grams over all n-grams of the corpus.                                     Li et al. 2016
double distinct(const std::vector<Tokens>& corpus, int n);

}  // namespace masquerade

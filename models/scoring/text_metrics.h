// SPDX-License-Identifier: MIT
// How close generated lines are to reference lines, one reference each, by the measures that papers report,
// as their usual programs compute them: docs/metrics.md. Lines go in as strings, so that models with
// different vocabularies compare. Scores and shares are in percent, 0..100, higher is better; of no pairs,
// all are 0. References and hypotheses that are not equally many are an Error.
#pragma once
#include <string>
#include <vector>

#include "models/scoring/metrics.h"

namespace masquerade {

using Strings = std::vector<std::string>;

enum class BleuTokens { words_13a, characters };  // text_tokens.h

// Corpus BLEU, smoothed, as sacrebleu has it: Post 2018.
Bleu bleu(const Strings& references, const Strings& hypotheses, BleuTokens tokens);

enum class RougeTokens { words, characters };  // text_tokens.h; characters are for Chinese

struct Overlap {
    double precision = 0;  // of the hypothesis' tokens
    double recall = 0;     // of the reference's
    double f1 = 0;         // harmonic mean; 0 where both are 0
};

// ROUGE-1, -2 and -L, means over the pairs: Lin 2004, as rouge-score has it, without stemmer; L is the
// longest common subsequence of the whole line (sentence level). A pair with an empty side counts 0.
struct Rouge {
    Overlap rouge1, rouge2, rougeL;
};
Rouge rouge(const Strings& references, const Strings& hypotheses, RougeTokens tokens);

// Measures of form, as of a couplet's second line. Characters are code points, white space not counted.
struct Form {
    double exact = 0;            // hypotheses that are their reference, byte for byte
    double same_length = 0;      // that have as many characters
    double without_repeats = 0;  // in which no character stands twice; punctuation may
    double length_ratio =
        0;  // mean of characters over the reference's; pairs with an empty reference left out
};
Form form(const Strings& references, const Strings& hypotheses);

}  // namespace masquerade

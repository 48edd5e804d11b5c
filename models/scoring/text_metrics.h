// SPDX-License-Identifier: MIT
// How close generated lines are to reference lines, one reference each, by the measures that papers report,
// as their usual programs compute them: docs/metrics.md. Lines go in as strings, so that models with
// different vocabularies compare. Scores and shares are in percent, 0..100, higher is better; of no pairs,
// all are 0. References and hypotheses that are not equally many are an Error.
#pragma once
#include <array>
#include <string>
#include <vector>

namespace masquerade {

using Strings = std::vector<std::string>;

enum class BleuTokens { words_13a, characters };  // text_tokens.h

// Corpus BLEU of n-grams up to 4: Papineni et al. 2002, as sacrebleu has it (Post 2018). An order without
// matches is smoothed: the k-th such counts 2^-k matches (Chen & Cherry 2014, method 3); where no n-gram
// matches at all, or the hypotheses have none of some order, the score is 0.
struct Bleu {
    double score = 0;
    std::array<double, 4> precision{};  // by order, from 1
    double brevity = 0;  // the penalty, 0..1; below 1 where hypotheses are shorter than references
    long hypothesis_tokens = 0, reference_tokens = 0;
    BleuTokens tokens = BleuTokens::words_13a;

    // In one line, with how it was computed: what sacrebleu prints, without its version.
    std::string report() const;
};
Bleu bleu(const Strings& references, const Strings& hypotheses, BleuTokens tokens);

// chrF2 over the corpus: F of precision and recall of character n-grams, orders 1 to 6 averaged, recall
// counts double: Popović 2015. White space does not count. As sacrebleu has it.
double chrf(const Strings& references, const Strings& hypotheses);

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

// What a form asks for, as a couplet's second line does. Characters are code points, white space not counted.
struct Form {
    double exact = 0;            // hypotheses that are their reference, byte for byte
    double same_length = 0;      // that have as many characters
    double without_repeats = 0;  // in which no character stands twice; punctuation may
    double length_ratio =
        0;  // mean of characters over the reference's; pairs with an empty reference left out
};
Form form(const Strings& references, const Strings& hypotheses);

}  // namespace masquerade

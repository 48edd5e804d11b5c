// SPDX-License-Identifier: MIT
// How close generated lines are to reference lines, one reference each, by the measures that papers report,
// as their usual programs compute them: docs/metrics.md. Lines go in as strings, so that models with
// different vocabularies compare. Scores and shares are in percent, 0..100, higher is better; of no pairs,
// all are 0. References and hypotheses that are not equally many are an Error.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "models/scoring/metrics.h"

namespace masquerade {

using Strings = std::vector<std::string>;

// How the usual scorers of text cut a line, to the letter, so that their figures and ours compare. Models and
// n-gram statistics read words of word_model.h instead. Bytes that are not UTF-8 are dropped.

// White space as Python's str.split has it: what all three below split at.
bool is_white_space(char32_t c);

// Every code point that is not white space: `char` of sacrebleu, and what chrF counts.
std::u32string characters_of(std::string_view line);

// `13a` of sacrebleu 2.6, that is mteval-v13a.pl of the WMT shared tasks: <skipped> and line ends go, &quot;
// &amp; &lt; &gt; are read (in this order, once), ASCII punctuation is set apart, but ' nowhere, a stop or a
// comma not between digits, a hyphen only after a digit. Case is kept.
std::vector<std::string> words_13a(std::string_view line);

// Those of rouge-score 0.1 without its stemmer: lower-cased, then the longest runs of a-z and 0-9. All else
// separates: of Chinese nothing is left, and of "naïve" two words.
std::vector<std::string> rouge_words(std::string_view line);

enum class BleuTokens { words_13a, characters };

// Corpus BLEU, smoothed, as sacrebleu has it: Post 2018.
Bleu bleu(const Strings& references, const Strings& hypotheses, BleuTokens tokens);

enum class RougeTokens { words, characters };  // characters are for Chinese

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
    double length_ratio = 0;     // mean of characters over the reference's; pairs with an empty reference left out
};
Form form(const Strings& references, const Strings& hypotheses);

}  // namespace masquerade

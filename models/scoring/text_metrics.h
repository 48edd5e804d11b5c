// SPDX-License-Identifier: MIT
// The measures that papers report for generated lines ("hypotheses") with one reference each, computed exactly as the
// usual programs compute them (docs/metrics.md). Lines are strings, so models with different vocabularies are
// comparable. Scores and shares are in percent, 0..100, and higher is better. If there are no pairs, all measures are
// 0. All measures throw Error if the numbers of references and hypotheses differ.
#pragma once
#include <string_view>

#include "models/scoring/metrics.h"

namespace masquerade {

// characters_of(), words_13a(), words_of() and rouge_words() cut a line into characters or words, exactly as the usual
// scoring programs do, so that scores are comparable. (sample_quality.h, which measures generated lines without
// references, uses the words of word_model.h instead.) Bytes that are not UTF-8 are dropped.

// Whether Python's str.split regards c as white space.
bool is_white_space(char32_t c);

// Returns all code points of a line that are not white space, like the tokenizer `char` of sacrebleu.
std::u32string characters_of(std::string_view line);

// Cuts a line like the tokenizer `13a` of sacrebleu 2.6, which follows mteval-v13a.pl of the WMT shared tasks. Removes
// <skipped>, and every line break after a hyphen together with the hyphen; decodes &quot; &amp; &lt; &gt; (in this
// order, once). Puts spaces around ASCII punctuation, with three exceptions: every ', a full stop or comma between two
// digits, and a hyphen that does not follow a digit. (As in sacrebleu, a stop or comma can also stay with a digit that
// follows it if another stop or comma precedes it: "a..5" becomes "a . .5".) Upper and lower case are kept.
Strings words_13a(std::string_view line);

// Returns the parts of a line between white space.
Strings words_of(std::string_view line);

// Cuts a line like rouge-score 0.1 without its stemmer. A word is a maximal sequence of the characters a-z and 0-9 in
// the lower-cased line; all other characters are separators. Chinese text therefore has no words, and "naïve" has two.
Strings rouge_words(std::string_view line);

// The unit in which lines are compared: words, as words_13a() or rouge_words() cut them, or characters, for Chinese.
enum class TextUnits { words, characters };

// Returns smoothed corpus BLEU, as sacrebleu computes it (Post 2018).
Bleu bleu(const Strings& references, const Strings& hypotheses, TextUnits units);

struct Overlap {
    double precision = 0;  // number of matches / number of n-grams (ROUGE-L: tokens) of the hypothesis
    double recall = 0;     // number of matches / number of n-grams (ROUGE-L: tokens) of the reference
    double f1 = 0;         // harmonic mean of precision and recall; 0 if both are 0
};

// Means over the pairs of ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), in percent, as rouge-score computes them without its
// stemmer. The matches of ROUGE-L are the longest common subsequence of the two lines (sentence level). A pair scores 0
// if its reference or its hypothesis is empty.
struct Rouge {
    Overlap rouge1, rouge2, rougeL;
};
Rouge rouge(const Strings& references, const Strings& hypotheses, TextUnits units);

// Measures of form, for example of the second line of a couplet. Characters are code points that are not white space.
struct Form {
    double exact = 0;            // share of the hypotheses that equal their reference byte for byte
    double same_length = 0;      // share of the hypotheses with as many characters as their reference
    double without_repeats = 0;  // share of the hypotheses in which no character except punctuation occurs twice
    double length_ratio = 0;     // mean of (hypothesis length / reference length) over non-empty references; not in %
};
Form form(const Strings& references, const Strings& hypotheses);

}  // namespace masquerade

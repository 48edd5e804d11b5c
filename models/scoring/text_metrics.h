// SPDX-License-Identifier: MIT
// The measures that papers report for generated lines with one reference each, computed as the usual programs compute
// them: docs/metrics.md. Lines are strings, so models with different vocabularies are comparable. Scores and shares are
// in percent, 0..100, higher is better; without pairs, all are 0. All measures throw Error if the numbers of references
// and hypotheses differ.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "models/scoring/metrics.h"

namespace masquerade {

using Strings = std::vector<std::string>;

// Tokenizers that exactly follow the usual scoring programs, so that scores are comparable. (Models and n-gram
// statistics use the words of word_model.h instead.) Bytes that are not UTF-8 are dropped.

// White space as in Python's str.split.
bool is_white_space(char32_t c);

// Every code point that is not white space: the tokenizer `char` of sacrebleu, and the characters of chrF.
std::u32string characters_of(std::string_view line);

// The tokenizer `13a` of sacrebleu 2.6, that is mteval-v13a.pl of the WMT shared tasks: removes <skipped> and line
// ends, decodes &quot; &amp; &lt; &gt; (in this order, once), and separates ASCII punctuation, except every ', a full
// stop or comma between digits, and a hyphen that does not follow a digit. Case is kept.
std::vector<std::string> words_13a(std::string_view line);

// The words of rouge-score 0.1 without its stemmer: the longest runs of a-z and 0-9 in the lower-cased line. All other
// characters are separators: Chinese text has no words, and "naïve" has two.
std::vector<std::string> rouge_words(std::string_view line);

enum class BleuTokens { words_13a, characters };

// Corpus BLEU, smoothed, as in sacrebleu: Post 2018.
Bleu bleu(const Strings& references, const Strings& hypotheses, BleuTokens tokens);

enum class RougeTokens { words, characters };  // characters are for Chinese

struct Overlap {
    double precision = 0;  // share of the hypothesis' tokens that match
    double recall = 0;     // share of the reference's tokens that match
    double f1 = 0;         // harmonic mean; 0 if both are 0
};

// ROUGE-1, -2 and -L, means over the pairs: Lin 2004, as in rouge-score without its stemmer. ROUGE-L uses the longest
// common subsequence of whole lines (sentence level). A pair with an empty side scores 0.
struct Rouge {
    Overlap rouge1, rouge2, rougeL;
};
Rouge rouge(const Strings& references, const Strings& hypotheses, RougeTokens tokens);

// Measures of form, for example of the second line of a couplet. Characters are code points without white space.
struct Form {
    double exact = 0;            // share of hypotheses that equal their reference byte for byte
    double same_length = 0;      // share of hypotheses with as many characters as the reference
    double without_repeats = 0;  // share of hypotheses in which no character except punctuation occurs twice
    double length_ratio = 0;     // mean of hypothesis length / reference length, without empty references
};
Form form(const Strings& references, const Strings& hypotheses);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// How the usual scorers of text cut a line, to the letter, so that their figures and ours compare. Models and
// n-gram statistics read words of word_model.h instead. Bytes that are not UTF-8 are dropped.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

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

}  // namespace masquerade

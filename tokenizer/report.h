// SPDX-License-Identifier: MIT
// Measures how well a vocabulary fits a text.
#pragma once
#include <string>

#include "tokenizer/word_counts.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// Returns a table with lines of at most 80 columns, then lists of at most `most` unknown words and at most `most`
// characters that are not tokens, most frequent first.
//
// The words must have been counted with the tokenizer's own NormaliseOptions. Punctuation marks and ideographs count as
// words. Characters are counted in the normalised words, bytes in the original lines without line feeds. No [CLS] or
// [SEP] is added, and special tokens in the text count as text.
std::string report(const WordCounts& words, const WordPiece& tokenizer, int most = 20);

}  // namespace masquerade

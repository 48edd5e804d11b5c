// SPDX-License-Identifier: MIT
// Measures how well a vocabulary fits a text.
#pragma once
#include <string>

#include "tokenizer/word_counts.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// Returns a table with lines of at most 80 columns, followed by two lists: at most `most` words with an [UNK], and at
// most `most` characters that the vocabulary lacks. Both lists begin with the most frequent item.
//
// The words must have been counted with the tokenizer's own NormaliseOptions. Each punctuation mark and each
// ideograph counts as a word. Characters are counted in the normalised words, bytes in the original lines without
// line feeds. No [CLS] or [SEP] is added, and special tokens that the text spells out count as text.
std::string report(const WordCounts& words, const WordPiece& tokenizer, int most = 20);

}  // namespace masquerade

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
// The words must have been counted with this tokenizer. Each punctuation mark, each ideograph and each added token that
// the tokenizer recognises counts as a word. Characters are counted in the normalised words and in added tokens, bytes
// in the original lines without line feeds. No [CLS] or [SEP] is added.
std::string report(const WordCounts& words, const WordPiece& tokenizer, int most = 20);

}  // namespace masquerade

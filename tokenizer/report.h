// SPDX-License-Identifier: MIT
// How well a vocabulary fits a text.
#pragma once
#include <string>

#include "tokenizer/word_counts.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// A table, lines of at most 80 columns, and lists of at most `most` unknown words and as many characters that are no
// token, the most frequent first. The words must be counted with the tokenizer's own NormaliseOptions: punctuation
// marks and ideographs count as words; characters are those of the words, bytes those of the lines without line
// feeds. No [CLS] or [SEP] is added, and what looks like one in the text is text.
std::string report(const WordCounts& words, const WordPiece& tokenizer, int most = 20);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Shows documents of a batch in words: what the model reads, and what it must predict.
#pragma once
#include <string>

#include "models/batch/batch.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

// Returns the first two documents of a batch, with lines of at most `columns` characters. The tokens that the rows
// predict stand below the rows; in insertion models, "+" and the words that are to be inserted behind the row. A long
// document is shown up to its 60th row.
std::string batch_in_words(const Batch& batch, const Vocabulary& vocabulary, int columns);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Learns a WordPiece vocabulary from text: the most frequent pair of pieces is merged, again and again (merger.h), with
// "##" before pieces that continue a word. The merges are thrown away; what stays is the vocabulary.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"
#include "tokenizer/word_counts.h"

namespace masquerade {

struct TrainerOptions : NormaliseOptions {
    int min_count = 2;   // a character seen less often is no token, nor is a pair
    int max_word = 200;  // a longer word teaches nothing: WordPiece makes it [UNK]
};

// Asked now and then with the share of the merges that is done, 0 to 1; false stops the training.
using TrainingProgress = std::function<bool(double done)>;

// The error that training throws when it is stopped. There is no vocabulary then: one that depends on when it was
// stopped would look like any other.
struct TrainingStopped : TokenizerError {
    using TokenizerError::TokenizerError;
};

// At most `size` tokens: the special ones; the characters, most frequent first, each with its "##" form unless it
// stands alone (punctuation, ideographs); then merged pieces, the most frequent pair first. Ties go to the smaller
// string. Only where nothing is left to merge are there fewer. How the text is read is settled by the words.
// TokenizerError where an option makes no sense, or there is no word.
Vocabulary train_vocabulary(const WordCounts& words, int size, const TrainerOptions& options = {},
                            const TrainingProgress& progress = nullptr);

// From lines in memory.
Vocabulary train_vocabulary(const std::vector<std::string>& lines, int size, const TrainerOptions& options = {});

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Learns a WordPiece vocabulary from text: repeatedly merges the most frequent pair of pieces (merger.h). Pieces that
// continue a word begin with "##". Only the vocabulary is kept, not the merges.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"
#include "tokenizer/word_counts.h"

namespace masquerade {

struct TrainerOptions : NormaliseOptions {
    int min_count = 2;   // rarer characters are not tokens; rarer pairs are not merged
    int max_word = 200;  // longer words are skipped: WordPiece makes them [UNK]
};

// Called now and then with the share of the merges that is done, 0 to 1. Returning false stops the training.
using TrainingProgress = std::function<bool(double done)>;

// Thrown if training is stopped. No vocabulary is returned then: it would depend on the moment of stopping, and nothing
// would show this.
struct TrainingStopped : TokenizerError {
    using TokenizerError::TokenizerError;
};

// Returns at most `size` tokens: the special tokens; the characters, most frequent first, each also with "##" unless it
// is always a word by itself (punctuation, ideographs); then merged pieces, most frequent pair first. Ties go to the
// smaller string. There are fewer tokens only if no pair is left to merge. The normalisation options in `options` are
// not used here: they were applied when the words were counted. TokenizerError if an option is out of range or there
// are no words.
Vocabulary train_vocabulary(const WordCounts& words, int size, const TrainerOptions& options = {},
                            const TrainingProgress& progress = nullptr);

// Counts the words of lines in memory, then trains on them.
Vocabulary train_vocabulary(const std::vector<std::string>& lines, int size, const TrainerOptions& options = {});

}  // namespace masquerade

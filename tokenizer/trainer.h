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
    int max_word = 200;  // longer words are skipped, because WordPiece encodes them as [UNK]
};

// Called every 64 merges with the fraction of the merges done, 0 to 1. If it returns false, training stops.
using TrainingProgress = std::function<bool(double done)>;

// Thrown when training is stopped. No vocabulary is returned: it would be incomplete, and nobody could tell.
struct TrainingStopped : TokenizerError {
    using TokenizerError::TokenizerError;
};

// Returns a vocabulary of `size` tokens, or fewer if no pair is left to merge. In this order, it contains
//   the special tokens,
//   the characters, most frequent first, each also with "##" unless it is always a word by itself (punctuation,
//   ideographs),
//   the merged pieces, most frequent pair first.
// Ties go to the smaller string. The normalisation options in `options` are not used: the words are normalised already.
// Throws TokenizerError if an option is out of range or there are no words.
Vocabulary train_vocabulary(const WordCounts& words, int size, const TrainerOptions& options = {},
                            const TrainingProgress& progress = nullptr);

// Counts the words of lines in memory with the normalisation options in `options`, then trains on the words.
Vocabulary train_vocabulary(const std::vector<std::string>& lines, int size, const TrainerOptions& options = {});

}  // namespace masquerade

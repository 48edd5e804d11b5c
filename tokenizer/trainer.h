// SPDX-License-Identifier: MIT
// Learns a WordPiece vocabulary from text: repeatedly merges the most frequent pair of pieces (merger.h). Pieces that
// continue a word begin with "##". Only the vocabulary is kept, not the merges.
#pragma once
#include <functional>

#include "tokenizer/vocabulary.h"
#include "tokenizer/word_counts.h"

namespace masquerade {

struct TrainerOptions : NormaliseOptions {
    int min_count = 2;   // characters and pairs that occur less often do not become tokens
    int max_word = 200;  // words of more code points are skipped: WordPiece encodes them as [UNK]
};

// Called every 64 merges with the fraction of the merges done, 0 to 1.
using TrainingProgress = std::function<void(double done)>;

// Returns a vocabulary of `size` tokens, or fewer if no pair is left to merge. It contains, in this order,
//   - the special tokens,
//   - the characters of the words, the most frequent first; each is followed by its form with "##", unless it is always
//     a word by itself (punctuation, ideographs),
//   - the merged pieces, in the order of merging.
// If counts are equal, the smaller string comes first. The normalisation options in `options` are not used, because the
// words are normalised already.
// Throws TokenizerError if an option is out of range or there are no words.
Vocabulary train_vocabulary(
    const WordCounts& words, int size, const TrainerOptions& options = {},
    const TrainingProgress& progress = [](double) {});

// Counts the words of lines in memory with the normalisation options in `options`, then trains on the words.
Vocabulary train_vocabulary(const Strings& lines, int size, const TrainerOptions& options = {});

}  // namespace masquerade

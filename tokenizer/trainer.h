// SPDX-License-Identifier: MIT
// Learns a WordPiece vocabulary from text: the pair of pieces with the best score is merged, again and again
// (merger.h), with "##" before pieces that continue a word. The merges are thrown away; what stays is the
// vocabulary.
#pragma once
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/merger.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_counts.h"

namespace masquerade {

struct TrainerOptions : NormaliseOptions {
    TrainerOptions() {}
    TrainerOptions(NormaliseOptions normalise) : NormaliseOptions(std::move(normalise)) {}

    Score score = Score::count;
    int min_count = 2;  // a character seen less often is no token, nor is a pair
    // The least count of a pair, if it differs; 0: min_count. Score::likelihood prefers rare pairs, and needs a high one.
    int min_pair_count = 0;
    int max_characters = 0;  // of the alphabet, the most frequent; 0: all
    int max_token = 0;       // no pair becomes a token of more code points, "##" not counted; 0: any length
    int max_word = 200;      // a longer word teaches nothing: WordPiece makes it [UNK]

    // They come first, in this order.
    std::vector<std::string> special{std::begin(special_tokens), std::end(special_tokens)};
};

// Asked now and then with "counting" or "merging" and the share of it that is done, 0 to 1; false stops the
// training.
using TrainingProgress = std::function<bool(const char* phase, double done)>;

// The error that training throws when it is stopped. There is no vocabulary then: one that depends on when it was
// stopped would look like any other.
struct TrainingStopped : TokenizerError {
    using TokenizerError::TokenizerError;
};

// Feed it lines, in any order and number; it keeps the different words only. The result depends on nothing
// but the lines and the options: not on their order, nor on threads.
class VocabularyTrainer {
  public:
    // Throws TokenizerError where an option makes no sense.
    explicit VocabularyTrainer(TrainerOptions options = {});

    // As WordCounts has them: a line; lines; whole lines that end at LF.
    void add(std::string_view line) { words_.add(line); }
    void add(const std::vector<std::string>& lines, int threads) { words_.add(lines, threads); }
    void add(const std::string* lines, std::size_t count, int threads) { words_.add(lines, count, threads); }
    void add_text(std::string_view text, int threads = 1) { words_.add_text(text, threads); }

    // At most `size` tokens: the special ones; the characters, most frequent first, each with its "##" form
    // unless it stands alone (punctuation, ideographs); then merged pieces, the pair with the best score
    // first. Ties go to the smaller string. Only where nothing is left to merge are there fewer.
    Vocabulary train(int size, const TrainingProgress& progress = {}) const;

    const WordCounts& words() const { return words_; }
    const TrainerOptions& options() const { return options_; }

  private:
    std::vector<std::string> alphabet() const;

    TrainerOptions options_;
    WordCounts words_;
};

// From lines in memory.
Vocabulary train_vocabulary(const std::vector<std::string>& lines, int size, TrainerOptions options = {},
                            int threads = 1, const TrainingProgress& progress = {});

}  // namespace masquerade

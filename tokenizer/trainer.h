// SPDX-License-Identifier: MIT
// Learns a WordPiece vocabulary from text: byte-pair encoding over words (Sennrich et al. 2016) with "##"
// before pieces that continue one. The merges are thrown away; what stays is the vocabulary.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/normalise.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

struct TrainerOptions {
    bool lower = true;           // as in WordPiece::Options
    bool single_digits = false;  // the same; by default frequent numbers become pieces of several digits
    int min_count = 2;           // a character or pair seen less often is no token
};

// Feed it lines, in any order and number; it keeps the different words only. The result depends on nothing
// but the lines and the options.
class VocabularyTrainer {
  public:
    explicit VocabularyTrainer(TrainerOptions options = {}) : options_(options) {}

    void add(std::string_view line);

    // At most `size` tokens: the five special ones; the characters, most frequent first, each with its "##"
    // form unless it stands alone; then merged pieces, the most frequent pair first. Ties go to the smaller
    // string.
    Vocabulary train(int size) const;

  private:
    std::vector<std::string> alphabet() const;

    TrainerOptions options_;
    std::unordered_map<std::string, std::int64_t> words_;
};

// Lines: any range of strings.
template <class Lines>
Vocabulary train_vocabulary(const Lines& lines, int size, TrainerOptions options = {}) {
    VocabularyTrainer trainer(options);
    for (const auto& line : lines) trainer.add(line);
    return trainer.train(size);
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Sentences and pairs of sentences as token ids, and the order in which training meets them: shuffled anew every epoch
// by (seed, epoch), taken until a token budget is full. The place in that order is two numbers, which a checkpoint
// keeps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

using Tokens = std::vector<int>;  // ids

struct Sentence {
    std::vector<int> ids;                  // [CLS] pieces [SEP]
    int name = 0;                          // its number in the corpus: random numbers are drawn by it
    std::vector<int> target;               // of a pair: pieces [SEP]; else empty
    bool cut = false, target_cut = false;  // its end was lost
    std::vector<int> asked;                // of an example: the places of `ids` that `target` has the answers for
    std::size_t size() const { return ids.size() + target.size(); }
};

// The first `most` of them, as batches take them.
std::vector<const Sentence*> pointers_to(const std::vector<Sentence>& sentences, std::size_t most = SIZE_MAX);

// Tokenised lines; longer ones lose the tokens before [SEP] until `max_length` is kept.
std::vector<Sentence> encode_lines(const WordPiece& tokenizer, const std::vector<std::string>& lines, int max_length);
// The same with the targets of these lines; a target keeps at most `max_target` tokens, its [SEP] among them.
std::vector<Sentence> encode_pairs(const WordPiece& tokenizer, const std::vector<std::string>& lines,
                                   const std::vector<std::string>& targets, int max_length, int max_target);

// A line that is read as at most `longest` tokens loses its end, or words outside the vocabulary.
struct Lost {
    bool end = false, words = false;
    bool nothing() const { return !end && !words; }
};
std::vector<Lost> lost_in(const WordPiece& tokenizer, const std::vector<std::string>& lines, int longest);

// Counts over many lines of what was read of them.
struct ReadCounts {
    std::int64_t lines = 0, cut = 0;      // cut: that lost their end
    std::int64_t words = 0, unknown = 0;  // that were kept; unknown: read as [UNK]
};
// Counts the sentences, or their targets.
ReadCounts counts_of(const WordPiece& tokenizer, const std::vector<Sentence>& sentences, bool targets);

class SentenceSource {
  public:
    SentenceSource(const std::vector<Sentence>& sentences, std::uint64_t seed);
    // Sentences until the next would exceed `tokens`; at least one.
    std::vector<const Sentence*> take(std::size_t tokens);
    // Epoch and place in it, for a checkpoint. BadInput where they are of another text.
    std::vector<std::uint64_t> numbers() const { return {epoch_, next_}; }
    void move_to(const std::vector<std::uint64_t>& numbers);

  private:
    void shuffle();
    const std::vector<Sentence>& sentences_;
    std::uint64_t seed_;
    std::uint64_t epoch_ = 0, next_ = 0;
    std::vector<std::uint32_t> order_;
};

}  // namespace masquerade

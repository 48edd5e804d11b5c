// SPDX-License-Identifier: MIT
// Sentences and pairs of sentences as token ids, and the order in which training visits them. Each epoch has its own
// random order, given by (seed, epoch). Batches are filled in this order up to a number of tokens. A checkpoint stores
// the position: the epoch, and the position in its order.
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
    int name = 0;                          // line number in the corpus; keys the random numbers
    std::vector<int> target;               // for pairs: pieces [SEP]; otherwise empty
    bool cut = false, target_cut = false;  // whether tokens at the end were dropped
    std::vector<int> asked = {};           // examples of a task: positions in `ids` whose answers are in `target`
    std::size_t size() const { return ids.size() + target.size(); }
};

// Returns pointers to the first `most` sentences.
std::vector<const Sentence*> pointers_to(const std::vector<Sentence>& sentences, std::size_t most = SIZE_MAX);

// Tokenises lines. If a line has more than `max_length` tokens, its end is cut off before [SEP].
std::vector<Sentence> encode_lines(const WordPiece& tokenizer, const std::vector<std::string>& lines, int max_length);
// Like encode_lines(), with targets. A target keeps at most `max_target` tokens, including [SEP].
std::vector<Sentence> encode_pairs(const WordPiece& tokenizer, const std::vector<std::string>& lines,
                                   const std::vector<std::string>& targets, int max_length, int max_target);

// The loss if at most `longest` tokens of a line are read: the end of the line, or words outside the vocabulary.
struct Lost {
    bool end = false, words = false;
    bool nothing() const { return !end && !words; }
};
std::vector<Lost> lost_in(const WordPiece& tokenizer, const std::vector<std::string>& lines, int longest);

// Counts over many lines.
struct ReadCounts {
    std::int64_t lines = 0, cut = 0;      // cut: lines whose end was cut off
    std::int64_t words = 0, unknown = 0;  // words that were kept; unknown: words read as [UNK]
};
// Returns the counts for the sentences or, if `targets` is true, for their targets.
ReadCounts counts_of(const WordPiece& tokenizer, const std::vector<Sentence>& sentences, bool targets);

class SentenceSource {
  public:
    SentenceSource(const std::vector<Sentence>& sentences, std::uint64_t seed);
    // Returns the next sentences: at least one, and more until the next one would exceed `tokens` in total. All are of
    // one epoch.
    std::vector<const Sentence*> take(std::size_t tokens);
    // The epoch and the position in it, for a checkpoint. move_to() continues there; it throws BadInput if the numbers
    // do not fit this text.
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

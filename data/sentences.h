// SPDX-License-Identifier: MIT
// Sentences and pairs of sentences as token ids, and their order in training. Each epoch has its own random order,
// which depends only on the seed and the epoch, and is computed place by place. Each batch takes the next sentences in
// this order, up to a number of tokens. A checkpoint stores the position: the epoch, and the number of sentences of
// this epoch that were already taken.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/permutation.h"
#include "input/lists.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct Sentence {
    Tokens ids;    // [CLS], the tokens of the line, [SEP]
    int name = 0;  // index of the line, from 0; the sentence's random numbers depend on it
    // For pairs, the tokens of the target, then [SEP]. For tasks that ask for answers at positions of the sentence
    // (`asked`), these answers as token ids. Otherwise empty.
    Tokens target;
    bool cut = false, target_cut = false;  // true if the end of the source, or of the target, was cut off
    // The number of sentences that were dealt before this one in training, over all epochs; elsewhere the name.
    std::uint64_t visit = 0;
    std::vector<int> asked = {};  // for tasks with answers: target[i] is the answer at ids[asked[i]]
    std::size_t size() const { return ids.size() + target.size(); }
};

using Sentences = std::vector<const Sentence*>;  // pointers to sentences that are stored elsewhere
using SentenceSize = std::function<std::size_t(const Sentence&)>;
inline std::size_t tokens_in(const Sentence& s) { return s.size(); }

// Returns pointers to the first `most` sentences.
Sentences pointers_to(const std::vector<Sentence>& sentences, std::size_t most = SIZE_MAX);

// Tokenises lines. A sentence has at most `max_length` tokens, including [CLS] and [SEP]; longer lines lose their end.
std::vector<Sentence> encode_lines(const WordPiece& tokenizer, const Strings& lines, int max_length);
// Like encode_lines(), with a target for each line. A target has at most `max_target` tokens, including [SEP].
std::vector<Sentence> encode_pairs(const WordPiece& tokenizer, const Strings& lines, const Strings& targets,
                                   int max_length, int max_target);

// The information that a line loses if a model reads at most `longest` tokens of it, including [CLS] and [SEP]: its
// end is cut off, or words outside the vocabulary become [UNK].
struct Lost {
    bool end = false, words = false;
    bool nothing() const { return !end && !words; }
};
std::vector<Lost> lost_in(const WordPiece& tokenizer, const Strings& lines, int longest);

// Counts over the sources or over the targets of many sentences.
struct ReadCounts {
    std::int64_t lines = 0, cut = 0;      // cut: lines whose end was cut off
    std::int64_t words = 0, unknown = 0;  // words: words that were not cut off; unknown: words that became [UNK]
};
// Adds the tokens of lines to the words and unknown words of ReadCounts.
class WordCounter {
  public:
    explicit WordCounter(const Vocabulary& vocabulary);
    void add(const Tokens& ids, ReadCounts& counts) const;

  private:
    std::vector<char> begins_;  // begins_[id]: whether the token begins a word
    int unknown_;
};

// A list of sentences, in memory or in a packed text (data/packed_text.h), which may be larger than memory. Several
// threads may read it at the same time.
class SentenceList {
  public:
    virtual ~SentenceList() = default;
    virtual std::uint64_t size() const = 0;
    virtual Sentence at(std::uint64_t i) const = 0;  // returns sentence i, counted from 0
    // Returns the counts for the sources of the sentences or, if `targets` is true, for their targets.
    virtual ReadCounts counts(const Vocabulary& vocabulary, bool targets) const = 0;
};
std::shared_ptr<const SentenceList> in_memory(std::vector<Sentence> sentences);

class SentenceSource {
  public:
    SentenceSource(std::shared_ptr<const SentenceList> sentences, std::uint64_t seed);
    // Returns the next sentences, whose sizes add up to at most `limit`, but at least one sentence. All of these
    // sentences come from the same epoch. The sentences exist until the next call.
    Sentences take(std::size_t limit, const SentenceSize& size = tokens_in);
    // Returns the position for a checkpoint: the epoch, and the number of sentences of this epoch that were already
    // taken. move_to() continues at such a position. It throws BadInput if the position is beyond the end of this text.
    std::vector<std::uint64_t> numbers() const { return {epoch_, next_}; }
    void move_to(const std::vector<std::uint64_t>& numbers);

  private:
    Permutation order_of(std::uint64_t epoch) const;
    std::shared_ptr<const SentenceList> sentences_;
    std::uint64_t seed_;
    std::uint64_t epoch_ = 0, next_ = 0;
    Permutation order_;  // of this epoch
    std::vector<Sentence> taken_;
};

}  // namespace masquerade

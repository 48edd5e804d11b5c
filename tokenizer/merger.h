// SPDX-License-Identifier: MIT
// Byte-pair merging (Sennrich et al. 2016): every word begins as a sequence of single characters; repeatedly, the
// most frequent pair of neighbouring tokens is merged into one token.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>

#include "tokenizer/vocabulary.h"

namespace masquerade {

// Merges pairs of neighbouring tokens. The most frequent pair is found with a priority queue. Each entry of the queue
// stores the count of its pair at the time of queueing. If the count rises, the pair is queued again at once; if the
// count falls, the pair is queued again when its entry reaches the front. Pairs with equal counts are ordered by the
// strings of their left tokens, then of their right tokens; smaller strings come first.
class Merger {
  public:
    using Count = std::int64_t;

    // Pairs that occur fewer than min_count times are not merged.
    Merger(Vocabulary& tokens, Count min_count) : tokens_(tokens), min_count_(min_count) {}
    Merger(const Merger&) = delete;  // queue_ refers to this object

    // Adds a word that occurs `count` times. `tokens` is the sequence of tokens into which the word is split at first.
    void add(const std::vector<int>& tokens, Count count);

    // Merges pairs until there are `size` tokens or every pair occurs fewer than min_count times. Calls progress()
    // before the first merge and then every 64 merges.
    void run(int size, const std::function<void()>& progress);

  private:
    struct Word {
        std::size_t begin;  // index of the word's first token in cut_
        int length;
        Count count;
    };
    struct Pair {
        int left, right;
        Count count = 0, queued = 0;  // queued: count in the pair's latest queue entry; 0: no valid entry
        std::vector<int> words = {};  // words in which the pair occurs; may have outdated or repeated entries
    };
    struct Queued {
        Count count;
        int pair;
    };
    struct Later {  // whether pair a is merged after pair b
        const Merger& merger;
        bool operator()(const Queued& a, const Queued& b) const;
    };

    void change(int left, int right, Count by, int word);
    void merge(int pair);
    void merge_in(int word, int left, int right, int merged);
    void queue(int pair);

    Vocabulary& tokens_;
    Count min_count_;
    std::vector<int> cut_;  // the tokens of all words, one word after the other
    std::vector<Word> words_;
    std::vector<Pair> pairs_;
    std::unordered_map<std::uint64_t, int> ids_;  // key that change() makes of the two tokens -> index into pairs_
    std::priority_queue<Queued, std::vector<Queued>, Later> queue_{Later{*this}};  // the most frequent pair on top
    std::vector<int> risen_;  // pairs whose count rose and that must be queued again
};

}  // namespace masquerade

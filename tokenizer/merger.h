// SPDX-License-Identifier: MIT
// Words cut into tokens, and the most frequent pair of neighbours merged again and again (Sennrich et al. 2016).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace masquerade {

// The tokens of a vocabulary in the making, in order.
class TokenList {
  public:
    // The token's place; a new one goes to the end.
    int add(const std::string& token);
    int find(const std::string& token) const;  // -1: not there
    const std::string& operator[](int id) const { return tokens_[std::size_t(id)]; }
    int size() const { return int(tokens_.size()); }
    std::vector<std::string> take() { return std::move(tokens_); }

  private:
    std::vector<std::string> tokens_;
    std::unordered_map<std::string, int> ids_;
};

// A queue holds each pair with the count that it had when it was put there. A pair whose count rose is put there again;
// one whose count fell is put there again when its turn comes. Equal counts go by the strings: the smaller left token
// first, then the smaller right one.
class Merger {
  public:
    using Count = std::int64_t;

    // Pairs seen less than min_count times stay apart.
    Merger(TokenList& tokens, Count min_count) : tokens_(tokens), min_count_(min_count) {}

    // A word as it is cut so far.
    void add(const std::vector<int>& tokens, Count count);

    // Merges until there are `size` tokens, or no pair to merge. Now and then goes_on() is asked; false ends it.
    bool run(int size, const std::function<bool()>& goes_on);

  private:
    struct Word {
        std::size_t begin;  // in cut_
        int length;
        Count count;
    };
    struct Pair {
        int left, right;
        Count count = 0, queued = 0;  // queued: the count it stands in the queue with; 0: not there
        std::vector<int> words = {};  // where it occurs; some may have lost it since, or be listed twice
    };
    struct Queued {
        Count count;
        int pair;
    };

    void change(int left, int right, Count by, int word);
    void merge(int pair);
    void merge_in(int word, int left, int right, int merged);
    void queue(int pair);
    bool later(const Queued& a, const Queued& b) const;

    TokenList& tokens_;
    Count min_count_;
    std::vector<int> cut_;  // the words' tokens, one word after the other
    std::vector<Word> words_;
    std::vector<Pair> pairs_;
    std::unordered_map<std::uint64_t, int> ids_;  // of pairs
    std::vector<Queued> queue_;                   // a heap
    std::vector<int> risen_;                      // pairs that became more frequent in a merge
};

}  // namespace masquerade

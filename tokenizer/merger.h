// SPDX-License-Identifier: MIT
// Words cut into tokens, and the pair of neighbours with the best score merged again and again.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace masquerade {

// Which pair of tokens a, b is merged first.
enum class Score {
    count,       // the most frequent (Sennrich et al. 2016)
    likelihood,  // that with the highest count(ab) / (count(a) * count(b)) (Schuster and Nakajima 2012, as it
                 // is usually read): parts that occur together more often than they would by chance
};

// The tokens of a vocabulary in the making, in order.
class TokenList {
  public:
    // The token's place; a new one goes to the end.
    int add(const std::string& token);
    int find(const std::string& token) const;  // -1: not there
    const std::string& operator[](int id) const { return tokens_[std::size_t(id)]; }
    int length(int id) const { return lengths_[std::size_t(id)]; }  // in code points, without "##"
    int size() const { return int(tokens_.size()); }
    std::vector<std::string> take() { return std::move(tokens_); }

  private:
    std::vector<std::string> tokens_;
    std::vector<int> lengths_;
    std::unordered_map<std::string, int> ids_;
};

// How it finds the best pair: all pairs that may be merged stand in a binary heap, and each knows its place
// there. A merge of a and b changes the counts of the pairs beside them, and with Score::likelihood the
// scores of all pairs that a or b is part of: up, where fewer of a and b are left, or down, where the pair
// itself became rarer. Each of them is moved to where it belongs before the next pair is taken: no score in
// the heap is ever out of date, and the top is the best. Scores are compared exactly. Equal ones go by the
// strings, the smaller left token first, then the smaller right one.
class Merger {
  public:
    using Count = std::int64_t;

    // Pairs seen less than min_count times, and those of more than longest code points (0: any), stay apart.
    Merger(TokenList& tokens, Score score, Count min_count, int longest)
        : tokens_(tokens), score_(score), min_count_(min_count), longest_(longest) {}

    // A word as it is cut so far.
    void add(const std::vector<int>& tokens, Count count);

    // Merges until there are `size` tokens, or no pair to merge. Now and then goes_on() is asked; false ends
    // it.
    bool run(int size, const std::function<bool()>& goes_on);

  private:
    struct Word {
        std::size_t begin;  // in cut_
        int length;
        Count count;
    };
    struct Pair {
        int left, right;
        Count count = 0;
        int place = -1;          // in the heap; -1: not there
        int touched = -1;        // by which merge last
        std::vector<int> words;  // where it occurs; some may have lost it since, or be listed twice
    };
    struct Candidate {
        double score;  // rounded
        Count count, left, right;
        int pair;
    };

    int pair_of(int left, int right);
    Count& count_of(int token);
    void change(int left, int right, Count by, int word);
    void touch(int pair);
    void merge(int pair);
    int merge_in(int word, int left, int right, int merged);
    void refresh(int pair);
    bool better(const Candidate& a, const Candidate& b) const;
    void put(std::size_t place, const Candidate& candidate);
    void rise(std::size_t place, const Candidate& candidate);
    void sink(std::size_t place, const Candidate& candidate);
    void remove(std::size_t place);

    TokenList& tokens_;
    Score score_;
    Count min_count_;
    int longest_;
    std::vector<int> cut_;  // the words' tokens, one word after the other
    std::vector<Word> words_;
    std::vector<Pair> pairs_;
    std::unordered_map<std::uint64_t, int> ids_;  // of pairs
    std::vector<Count> counts_;                   // of tokens
    std::vector<std::vector<int>> pairs_with_;    // a token, for Score::likelihood
    std::vector<Candidate> heap_;
    std::vector<int> touched_;
    int merges_ = 0;
};

}  // namespace masquerade

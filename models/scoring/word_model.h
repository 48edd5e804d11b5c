// SPDX-License-Identifier: MIT
// A language model of words that gives every word a probability, so that all texts are comparable: held-out lines,
// samples of this model, samples of a model with another vocabulary.
//
// Words are the words of BERT's pre-tokenizer, lower-cased and without accents; pieces would depend on the vocabulary
// of the evaluated model. Words that occur once in the training text, and words that do not occur at all, are <unk>,
// whose probability is learned like that of any other word. With <unk> alone, every invented word would be cheap, and
// gibberish would look like good text. An unknown word is therefore also spelled byte by byte, as in Brown et al. 1992
// ("An estimate of an upper bound for the entropy of English"):
//
//   P(w|h) = p(w|h)                               w known
//            p(<unk>|h) s(w) / (1 - sum_k s(k))   w unknown; k: all known words
//
// p is a 5-gram model of the lines; s is a 6-gram model of the bytes of every distinct word, including its end. With
// orders 3, 4, 5, 6, 7 of s, an unknown word of held-out package synopses costs 19.1, 17.2, 16.2, 15.9, 15.8 nats. The
// probabilities of all words and of the line's end sum to 1.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/scoring/ngram.h"
#include "tokenizer/normalise.h"

namespace masquerade {

// Numbers words in the order in which they first occur.
class WordTable {
  public:
    WordTable() : characters_(NormaliseOptions()) {}
    WordTable(const WordTable&) = delete;
    WordTable& operator=(const WordTable&) = delete;

    // Returns the words of a line. Adds new words to the table.
    std::vector<int> read(std::string_view line);
    int size() const { return int(words_.size()); }
    const std::string& operator[](int word) const { return *words_[std::size_t(word)]; }

  private:
    Characters characters_;
    std::unordered_map<std::string, int> numbers_;
    std::vector<const std::string*> words_;  // the keys of numbers_
};

class WordModel {
  public:
    static constexpr int order = 5, spelling_order = 6;

    // `lines` have words of `table`. The table may grow later and must outlive the model.
    WordModel(const WordTable& table, const std::vector<std::vector<int>>& lines);

    // log p, in nats, of each word of a line given the preceding ones, followed by log p of the line's end.
    std::vector<double> log_probabilities(const std::vector<int>& line) const;
    bool known(int word) const { return symbol_of(word) != unknown_; }

  private:
    WordModel(const WordTable& table, const std::vector<std::vector<int>>& lines, const std::vector<int>& count);
    int symbol_of(int word) const {
        return std::size_t(word) < symbols_.size() ? symbols_[std::size_t(word)] : unknown_;
    }
    std::vector<int> symbols_of(const std::vector<int>& line) const;
    std::vector<std::vector<int>> symbols_of(const std::vector<std::vector<int>>& lines) const;
    double spelled(int word) const;  // log s

    const WordTable& table_;
    int unknown_ = 0;           // known words are 0 .. unknown_ - 1
    std::vector<int> symbols_;  // symbols of the words that the table had at construction
    Ngram words_, spelling_;
    double log_spare_ = 0;  // log (1 - sum of s over the known words)
};

struct Perplexity {
    double all = 0;      // exp of the mean -log p of words and ends of lines
    double known = 0;    // as `all`, without the unknown words
    double unknown = 0;  // share of the words that are unknown
};
Perplexity perplexity(const WordModel& model, const std::vector<std::vector<int>>& lines);

}  // namespace masquerade

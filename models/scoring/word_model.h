// SPDX-License-Identifier: MIT
// A language model of words that gives every word a probability, so that texts of any origin compare:
// held-out lines, samples of this model, samples of one with another vocabulary.
//
// Words are what BERT's pre-tokenizer cuts, lower-cased and without accents: pieces would depend on the
// vocabulary of the model that is judged. A word seen once in the training text stands for those never seen:
// both are <unk>, whose probability after each context is learned as that of any word. But <unk> alone would
// be one cheap word for all that a generator of pieces invents, and gibberish would look like good text. So
// an unknown word is also spelled, byte by byte, as Brown et al. 1992 do ("An estimate of an upper bound for
// the entropy of English"):
//
//   P(w|h) = p(w|h)                               w known
//            p(<unk>|h) s(w) / (1 - sum_k s(k))   w unknown; k: all known words
//
// p is a 5-gram model of the lines, s a 6-gram model of the bytes of every different word, with the word's
// end; orders 3, 4, 5, 6, 7 spell the unknown words of held-out package synopses at 19.1, 17.2, 16.2, 15.9,
// 15.8 nats each. The sum over all words and the line's end is 1.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/scoring/ngram.h"
#include "tokenizer/normalise.h"

namespace masquerade {

// Words by number, in the order in which they were first met.
class WordTable {
  public:
    WordTable() : characters_(NormaliseOptions()) {}
    WordTable(const WordTable&) = delete;
    WordTable& operator=(const WordTable&) = delete;

    // The words of a line; new ones are added.
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

    // Lines of words of the table, which may grow later and must outlive the model.
    WordModel(const WordTable& table, const std::vector<std::vector<int>>& lines);

    // log p, in nats, of each word of a line after those before it, and of the line's end: one number more.
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
    std::vector<int> symbols_;  // of the table's words when the model was made
    Ngram words_, spelling_;
    double log_spare_ = 0;  // log (1 - sum of s over the known words)
};

// How well a model expects a text.
struct Perplexity {
    double all = 0;      // exp of the mean -log p of words and ends of lines
    double known = 0;    // the same without the unknown words
    double unknown = 0;  // share of the words that are
};
Perplexity perplexity(const WordModel& model, const std::vector<std::vector<int>>& lines);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// A language model of words that gives every possible word a probability above 0. It can therefore score all texts:
// held-out lines and samples of any model, whatever the model's vocabulary.
//
// Words are cut by BERT's pre-tokenizer, and are lower-cased and without accents. The tokens of the evaluated model are
// not used, because they depend on the model's vocabulary. A word that occurs less than twice in the training text is
// unknown. All unknown words share the symbol <unk>, whose probability is learned like the probability of any other
// word. With <unk> alone, every invented word would have the probability of <unk>, and gibberish would score like good
// text. The probability of an unknown word w therefore also has a factor for the spelling of w, as in Brown et al. 1992
// ("An estimate of an upper bound for the entropy of English"). h are the words before w:
//
//   P(w|h) = p(w|h)                               if w is known
//            p(<unk>|h) s(w) / (1 - sum_k s(k))   if w is unknown; the sum is over all known words k
//
// p is a 5-gram model of the training lines. s is a 6-gram model of spellings, fitted to the distinct words of the
// training lines; the spelling of a word is its bytes, then an end symbol. For each h, the probabilities of all words
// and of the line's end sum to 1.
//
// s has the order 6 because higher orders are hardly better: on the one-line descriptions of Debian packages, the
// spelling of an unknown held-out word costs 19.1, 17.2, 16.2, 15.9 and 15.8 nats with the orders 3, 4, 5, 6 and 7.
#pragma once
#include <optional>
#include <unordered_map>

#include "models/scoring/ngram.h"
#include "tokenizer/normalise.h"

namespace masquerade {

// Assigns the numbers 0, 1, ... to words, in the order in which the words first occur.
class WordTable {
  public:
    WordTable() : characters_(NormaliseOptions()) {}
    WordTable(const WordTable&) = delete;
    WordTable& operator=(const WordTable&) = delete;

    // Returns the numbers of the words of a line. Words that the table does not have yet are added to it.
    Tokens read(std::string_view line);
    int size() const { return words_.size(); }
    const std::string& operator[](int word) const { return *words_[word]; }

  private:
    Characters characters_;
    std::unordered_map<std::string, int> numbers_;
    std::vector<const std::string*> words_;  // the keys of numbers_
};

class WordModel {
  public:
    static constexpr int order = 5, spelling_order = 6;

    // Fits the model to `lines`, which are word numbers of `table`. Words may be added to the table later. The table
    // must outlive the model.
    WordModel(const WordTable& table, const Texts& lines);

    // Returns log P, in nats, of each word of a line given the preceding words, followed by log P of the line's end.
    Numbers log_probabilities(const Tokens& line) const;
    bool known(int word) const { return symbol_of(word) != unknown_; }

  private:
    int symbol_of(int word) const { return std::size_t(word) < symbols_.size() ? symbols_[word] : unknown_; }
    Tokens symbols_of(const Tokens& line) const;
    double spelled(int word) const;  // log probability of the spelling of a word

    const WordTable& table_;
    int unknown_ = 0;           // the symbol of unknown words; known words have the symbols 0 .. unknown_ - 1
    std::vector<int> symbols_;  // for each word that the table had at construction, its symbol
    std::optional<Ngram> words_, spelling_;
    double log_spare_ = 0;  // log of (1 - the sum of the spelling probabilities of all known words)
};

struct Perplexity {
    double all = 0;      // exp of the mean of -log P over all words and line ends
    double known = 0;    // exp of the mean of -log P over the known words and line ends
    double unknown = 0;  // share of the words that are unknown, 0..1
};
Perplexity perplexity(const WordModel& model, const Texts& lines);

}  // namespace masquerade

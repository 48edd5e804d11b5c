// SPDX-License-Identifier: MIT
#include "tokenizer/trainer.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

using Count = std::int64_t;

constexpr int longest_word = 200;  // in code points: what WordPiece would not cut either

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

// Calls use(character) for each code point of a normalised word.
template <class Use>
void each_character(std::string_view word, Use use) {
    for (std::size_t i = 0; i < word.size();) {
        std::size_t length = std::size_t(decode_utf8(word, i).length);
        use(word.substr(i, length));
        i += length;
    }
}

// The tokens found so far, in order.
class Tokens {
  public:
    int add(const std::string& token) {
        auto [place, is_new] = ids_.try_emplace(token, int(tokens_.size()));
        if (is_new) tokens_.push_back(token);
        return place->second;
    }
    int find(const std::string& token) const {
        auto place = ids_.find(token);
        return place == ids_.end() ? -1 : place->second;
    }
    const std::string& operator[](int id) const { return tokens_[std::size_t(id)]; }
    int size() const { return int(tokens_.size()); }
    std::vector<std::string> take() { return std::move(tokens_); }

  private:
    std::vector<std::string> tokens_;
    std::unordered_map<std::string, int> ids_;
};

// A word as the tokens it is cut into at present.
struct Word {
    std::vector<int> tokens;
    Count count;
};

using Pair = std::pair<int, int>;

struct PairHash {
    std::size_t operator()(const Pair& p) const {
        std::uint64_t both = std::uint64_t(p.first) << 32 | std::uint32_t(p.second);
        return std::size_t(both * 0x9E3779B97F4A7C15u >> 20);  // Fibonacci hashing
    }
};

// How often a pair of neighbours occurs, and in which words; a word may have lost the pair since, or be
// listed twice.
struct Occurrences {
    Count count = 0;
    std::vector<int> words;
};

// Words cut into tokens, and the count of every pair of neighbours, kept up to date from merge to merge.
class Merger {
  public:
    Merger(Tokens& tokens, std::vector<Word> words, Count min_count)
        : tokens_(tokens), words_(std::move(words)), min_count_(min_count) {
        for (std::size_t w = 0; w < words_.size(); w++)
            for (std::size_t i = 0; i + 1 < words_[w].tokens.size(); i++)
                change({words_[w].tokens[i], words_[w].tokens[i + 1]}, words_[w].count, int(w));
        for (const auto& [pair, found] : pairs_) push(pair, found.count);
    }

    // Merges until there are `size` tokens, or no pair that is frequent enough.
    void run(int size) {
        while (tokens_.size() < size && !queue_.empty()) {
            Candidate best = queue_.top();
            queue_.pop();
            Count count = count_of(best.pair);
            if (count == best.count)
                merge(best.pair);
            else
                push(best.pair, count);  // out of date: back to where it belongs now
        }
    }

  private:
    struct Candidate {
        Count count;
        Pair pair;
    };

    struct Worse {
        const Tokens& tokens;
        bool operator()(const Candidate& a, const Candidate& b) const {
            if (a.count != b.count) return a.count < b.count;
            if (a.pair.first != b.pair.first) return tokens[a.pair.first] > tokens[b.pair.first];
            return tokens[a.pair.second] > tokens[b.pair.second];
        }
    };

    Count count_of(Pair pair) const {
        auto found = pairs_.find(pair);
        return found == pairs_.end() ? 0 : found->second.count;
    }

    void push(Pair pair, Count count) {
        if (count >= min_count_) queue_.push({count, pair});
    }

    void change(Pair pair, Count by, int word) {
        Occurrences& found = pairs_[pair];
        found.count += by;
        if (by > 0 && (found.words.empty() || found.words.back() != word)) found.words.push_back(word);
    }

    void merge(Pair pair) {
        int merged = tokens_.add(tokens_[pair.first] + tokens_[pair.second].substr(2));
        std::vector<int> words = std::move(pairs_[pair].words);
        std::vector<Pair> grown;
        for (int w : words) merge_in(w, pair, merged, grown);
        pairs_.erase(pair);
        std::sort(grown.begin(), grown.end());
        grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
        for (Pair p : grown) push(p, count_of(p));
    }

    // In one word, from left to right; the tokens that are done stand before `kept`.
    void merge_in(int w, Pair pair, int merged, std::vector<Pair>& grown) {
        auto& [tokens, count] = words_[std::size_t(w)];
        auto replace = [&, count = count](Pair old, Pair by) {
            change(old, -count, w);
            change(by, count, w);
            grown.push_back(by);
        };
        std::size_t kept = 0, n = tokens.size();
        for (std::size_t i = 0; i < n; i++, kept++) {
            tokens[kept] = tokens[i];
            if (i + 1 == n || tokens[i] != pair.first || tokens[i + 1] != pair.second) continue;
            if (kept > 0) replace({tokens[kept - 1], pair.first}, {tokens[kept - 1], merged});
            if (i + 2 < n) replace({pair.second, tokens[i + 2]}, {merged, tokens[i + 2]});
            tokens[kept] = merged;
            i++;
        }
        tokens.resize(kept);
    }

    Tokens& tokens_;
    std::vector<Word> words_;
    Count min_count_;
    std::unordered_map<Pair, Occurrences, PairHash> pairs_;
    std::priority_queue<Candidate, std::vector<Candidate>, Worse> queue_{Worse{tokens_}};
};

}  // namespace

void VocabularyTrainer::add(std::string_view line) {
    for (Words word(line, {options_.lower, options_.single_digits}); word.next();)
        if (word.length() <= longest_word) words_[word.text()]++;
}

std::vector<std::string> VocabularyTrainer::alphabet() const {
    std::unordered_map<std::string, Count> counts;
    for (const auto& [word, count] : words_)
        each_character(word, [&, n = count](std::string_view c) { counts[std::string(c)] += n; });
    std::vector<std::pair<Count, std::string>> ranked;
    for (const auto& [character, count] : counts)
        if (count >= options_.min_count) ranked.push_back({-count, character});
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::string> tokens;
    for (const auto& [rank, character] : ranked) {
        tokens.push_back(character);
        char32_t c = decode_utf8(character, 0).value;
        if (!stands_alone(c) && !(options_.single_digits && is_digit(c))) tokens.push_back("##" + character);
    }
    return tokens;
}

Vocabulary VocabularyTrainer::train(int size) const {
    if (size < 6)
        throw TokenizerError("a vocabulary of " + std::to_string(size) +
                             " tokens has no room for text: five are special, so ask for 6 or more");
    if (words_.empty())
        throw TokenizerError("the text is empty: there are no words to learn a vocabulary from");
    Tokens tokens;
    for (const char* token : special_tokens) tokens.add(token);
    for (const std::string& token : alphabet())
        if (tokens.size() < size) tokens.add(token);

    std::vector<Word> words;
    for (const auto& [text, count] : words_) {
        Word word{{}, count};
        each_character(text, [&](std::string_view c) {
            word.tokens.push_back(tokens.find((word.tokens.empty() ? "" : "##") + std::string(c)));
        });
        // Encoding makes a word with an unknown character [UNK], so its pieces would be of no use.
        if (std::count(word.tokens.begin(), word.tokens.end(), -1) == 0) words.push_back(std::move(word));
    }
    Merger(tokens, std::move(words), options_.min_count).run(size);
    return Vocabulary(tokens.take());
}

}  // namespace masquerade

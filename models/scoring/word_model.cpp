// SPDX-License-Identifier: MIT
#include "models/scoring/word_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace masquerade {
namespace {

Tokens bytes_of(const std::string& word) {
    Tokens bytes;
    for (char c : word) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
}

}  // namespace

Tokens WordTable::read(std::string_view line) {
    Tokens numbers;
    for (Words words(line, characters_); words.next();) {
        auto [at, is_new] = numbers_.try_emplace(words.text(), size());
        if (is_new) words_.push_back(&at->first);
        numbers.push_back(at->second);
    }
    return numbers;
}

WordModel::WordModel(const WordTable& table, const Texts& lines) : table_(table) {
    std::vector<int> count(table.size());
    for (const Tokens& line : lines)
        for (int word : line) count[word]++;
    Texts symbols, spellings;
    // Words that occur at least twice are known, and get the symbols 0, 1, ... unknown_ counts them; the final count is
    // the symbol of unknown words, which replaces the -1.
    for (int word = 0; word < table.size(); word++) {
        symbols_.push_back(count[word] >= 2 ? unknown_++ : -1);
        if (count[word] > 0) spellings.push_back(bytes_of(table[word]));
    }
    std::replace(symbols_.begin(), symbols_.end(), -1, unknown_);
    for (const Tokens& line : lines) symbols.push_back(symbols_of(line));
    words_.emplace(order, unknown_ + 1, symbols);
    spelling_.emplace(spelling_order, 256, spellings);
    double known_words = 0;
    for (int word = 0; word < table.size(); word++)
        if (known(word)) known_words += std::exp(spelled(word));
    log_spare_ = std::log1p(-known_words);
}

Tokens WordModel::symbols_of(const Tokens& line) const {
    Tokens symbols;
    for (int word : line) symbols.push_back(symbol_of(word));
    return symbols;
}

double WordModel::spelled(int word) const {
    const Numbers logs = spelling_->log_probabilities(bytes_of(table_[word]));
    return std::accumulate(logs.begin(), logs.end(), 0.0);
}

Numbers WordModel::log_probabilities(const Tokens& line) const {
    Numbers logs = words_->log_probabilities(symbols_of(line));
    for (std::size_t i = 0; i < line.size(); i++)
        if (!known(line[i])) logs[i] += spelled(line[i]) - log_spare_;
    return logs;
}

Perplexity perplexity(const WordModel& model, const Texts& lines) {
    double sum = 0, known_sum = 0, words = 0, unknown = 0;
    for (const Tokens& line : lines) {
        Numbers logs = model.log_probabilities(line);
        for (std::size_t i = 0; i < logs.size(); i++) {
            const bool known = i == line.size() || model.known(line[i]);
            sum -= logs[i];
            if (known) known_sum -= logs[i];
            unknown += !known;
        }
        words += line.size();
    }
    const double events = words + lines.size();
    if (events == 0) return {};
    return {std::exp(sum / events), std::exp(known_sum / (events - unknown)), words > 0 ? unknown / words : 0};
}

}  // namespace masquerade

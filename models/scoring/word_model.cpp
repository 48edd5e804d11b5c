// SPDX-License-Identifier: MIT
#include "models/scoring/word_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace masquerade {
namespace {

std::vector<int> bytes_of(const std::string& word) {
    std::vector<int> bytes;
    for (char c : word) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
}

std::vector<int> count_words(const WordTable& table, const std::vector<std::vector<int>>& lines) {
    std::vector<int> count(std::size_t(table.size()));
    for (const std::vector<int>& line : lines)
        for (int word : line) count[std::size_t(word)]++;
    return count;
}

// Returns the symbol of each word. Words that occur at least twice are known, and get the symbols 0, 1, 2 ... in their
// order. All other words get the symbol `known`, which becomes the number of known words. It must be 0 at the call.
std::vector<int> number_known(const std::vector<int>& count, int& known) {
    std::vector<int> symbols;
    for (int times : count) symbols.push_back(times >= 2 ? known++ : -1);
    std::replace(symbols.begin(), symbols.end(), -1, known);
    return symbols;
}

std::vector<std::vector<int>> spellings(const WordTable& table, const std::vector<int>& count) {
    std::vector<std::vector<int>> all;
    for (int word = 0; word < table.size(); word++)
        if (count[std::size_t(word)] > 0) all.push_back(bytes_of(table[word]));
    return all;
}

}  // namespace

std::vector<int> WordTable::read(std::string_view line) {
    std::vector<int> numbers;
    for (Words words(line, characters_); words.next();) {
        auto [at, is_new] = numbers_.try_emplace(words.text(), size());
        if (is_new) words_.push_back(&at->first);
        numbers.push_back(at->second);
    }
    return numbers;
}

WordModel::WordModel(const WordTable& table, const std::vector<std::vector<int>>& lines)
    : WordModel(table, lines, count_words(table, lines)) {}

WordModel::WordModel(const WordTable& table, const std::vector<std::vector<int>>& lines, const std::vector<int>& count)
    : table_(table),
      symbols_(number_known(count, unknown_)),
      words_(order, unknown_ + 1, symbols_of(lines)),
      spelling_(spelling_order, 256, spellings(table, count)) {
    double known_words = 0;
    for (int word = 0; word < table.size(); word++)
        if (known(word)) known_words += std::exp(spelled(word));
    log_spare_ = std::log1p(-known_words);
}

std::vector<int> WordModel::symbols_of(const std::vector<int>& line) const {
    std::vector<int> symbols;
    for (int word : line) symbols.push_back(symbol_of(word));
    return symbols;
}

std::vector<std::vector<int>> WordModel::symbols_of(const std::vector<std::vector<int>>& lines) const {
    std::vector<std::vector<int>> all;
    for (const std::vector<int>& line : lines) all.push_back(symbols_of(line));
    return all;
}

double WordModel::spelled(int word) const {
    const std::vector<double> logs = spelling_.log_probabilities(bytes_of(table_[word]));
    return std::accumulate(logs.begin(), logs.end(), 0.0);
}

std::vector<double> WordModel::log_probabilities(const std::vector<int>& line) const {
    std::vector<double> logs = words_.log_probabilities(symbols_of(line));
    for (std::size_t i = 0; i < line.size(); i++)
        if (!known(line[i])) logs[i] += spelled(line[i]) - log_spare_;
    return logs;
}

Perplexity perplexity(const WordModel& model, const std::vector<std::vector<int>>& lines) {
    double sum = 0, known_sum = 0, words = 0, unknown = 0;
    for (const std::vector<int>& line : lines) {
        std::vector<double> logs = model.log_probabilities(line);
        for (std::size_t i = 0; i < logs.size(); i++) {
            const bool known = i == line.size() || model.known(line[i]);
            sum -= logs[i];
            if (known) known_sum -= logs[i];
            unknown += !known;
        }
        words += double(line.size());
    }
    const double events = words + double(lines.size());
    if (events == 0) return {};
    return {std::exp(sum / events), std::exp(known_sum / (events - unknown)), words > 0 ? unknown / words : 0};
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "tokenizer/trainer.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

constexpr std::size_t lines_between_questions = 1 << 16;

void check(const char* name, int value, int least) {
    if (value < least)
        throw TokenizerError(std::string(name) + " is " + std::to_string(value) + ", expected " +
                             std::to_string(least) + " or more");
}

void check(const TrainerOptions& options) {
    check("min_count", options.min_count, 1);
    check("min_pair_count", options.min_pair_count, 0);
    check("max_characters", options.max_characters, 0);
    check("max_token", options.max_token, 0);
    check("max_word", options.max_word, 1);
    std::set<std::string> different;
    for (const std::string& token : options.special)
        if (token.empty() || token.find('\n') != std::string::npos || !different.insert(token).second)
            throw TokenizerError("the special token \"" + token +
                                 "\" is empty, has a line feed in it or is given twice");
    if (different.count("[UNK]") == 0)
        throw TokenizerError("[UNK] is not among the special tokens, and no tokenizer works without it");
}

void ask(const TrainingProgress& progress, const char* phase, double done) {
    if (progress && !progress(phase, done))
        throw TrainingStopped(std::string("training was stopped while ") + phase +
                              ": there is no vocabulary");
}

}  // namespace

VocabularyTrainer::VocabularyTrainer(TrainerOptions options)
    : options_((check(options), std::move(options))), words_(options_) {}

std::vector<std::string> VocabularyTrainer::alphabet() const {
    std::unordered_map<char32_t, std::int64_t> counts;
    words_.each([&](std::string_view word, std::int64_t count) {
        each_character(word, [&](char32_t c, std::string_view) { counts[c] += count; });
    });
    std::vector<std::pair<std::int64_t, char32_t>> ranked;
    for (const auto& [c, count] : counts)
        if (count >= options_.min_count) ranked.push_back({-count, c});
    std::sort(ranked.begin(), ranked.end());
    if (options_.max_characters > 0 && ranked.size() > std::size_t(options_.max_characters))
        ranked.resize(std::size_t(options_.max_characters));
    std::vector<std::string> tokens;
    for (const auto& [rank, c] : ranked) {
        std::string character;
        append_utf8(character, c);
        tokens.push_back(character);
        if (!words_.characters()[c].is(Character::alone)) tokens.push_back("##" + character);
    }
    return tokens;
}

Vocabulary VocabularyTrainer::train(int size, const TrainingProgress& progress) const {
    if (size <= int(options_.special.size()))
        throw TokenizerError("a vocabulary of " + std::to_string(size) + " tokens has no room for text: " +
                             std::to_string(options_.special.size()) + " are special, so ask for " +
                             std::to_string(options_.special.size() + 1) + " or more");
    if (words_.different() == 0)
        throw TokenizerError("the text is empty: there are no words to learn a vocabulary from");
    ask(progress, "merging", 0);
    TokenList tokens;
    for (const std::string& token : options_.special) tokens.add(token);
    for (const std::string& token : alphabet())
        if (tokens.size() < size) tokens.add(token);

    int min_count = options_.min_pair_count > 0 ? options_.min_pair_count : options_.min_count;
    Merger merger(tokens, options_.score, min_count, options_.max_token);
    std::vector<int> cut;
    std::string piece;
    words_.each([&](std::string_view word, std::int64_t count) {
        cut.clear();
        each_character(word, [&](char32_t, std::string_view c) {
            piece.assign(cut.empty() ? "" : "##").append(c);
            cut.push_back(tokens.find(piece));
        });
        // Encoding makes a word that is too long, or has an unknown character, [UNK]: its pieces would be of
        // no use.
        bool unknown = std::count(cut.begin(), cut.end(), -1) > 0;
        if (!unknown && cut.size() <= std::size_t(options_.max_word)) merger.add(cut, count);
    });
    const int first = tokens.size();
    bool finished = merger.run(size, [&] {
        double done = double(tokens.size() - first) / std::max(1, size - first);
        return !progress || progress("merging", done);
    });
    if (!finished)
        throw TrainingStopped("training was stopped with " + std::to_string(tokens.size()) + " of " +
                              std::to_string(size) + " tokens found: there is no vocabulary");
    if (progress) progress("merging", 1);
    return Vocabulary(tokens.take());
}

Vocabulary train_vocabulary(const std::vector<std::string>& lines, int size, TrainerOptions options,
                            int threads, const TrainingProgress& progress) {
    VocabularyTrainer trainer(std::move(options));
    for (std::size_t begin = 0; begin < lines.size(); begin += lines_between_questions) {
        ask(progress, "counting", double(begin) / double(lines.size()));
        trainer.add(&lines[begin], std::min(lines_between_questions, lines.size() - begin), threads);
    }
    return trainer.train(size, progress);
}

}  // namespace masquerade

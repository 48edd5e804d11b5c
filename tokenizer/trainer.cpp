// SPDX-License-Identifier: MIT
#include "tokenizer/trainer.h"

#include <algorithm>
#include <unordered_map>

#include "input/utf8.h"
#include "tokenizer/merger.h"

namespace masquerade {

namespace {

void check(const char* name, int value, int least) {
    if (value < least) throw TokenizerError(name, " is ", value, ", expected ", least, " or more");
}

Strings alphabet(const WordCounts& words, int min_count) {
    std::unordered_map<char32_t, std::int64_t> counts;
    words.each([&](std::string_view word, std::int64_t count) {
        each_character(word, [&](char32_t c, std::string_view) { counts[c] += count; });
    });
    std::vector<std::pair<std::int64_t, char32_t>> ranked;
    for (const auto& [c, count] : counts)
        if (count >= min_count) ranked.push_back({-count, c});
    std::sort(ranked.begin(), ranked.end());
    Strings tokens;
    for (const auto& [rank, c] : ranked) {
        const std::string character = to_utf8(std::u32string(1, c));
        tokens.push_back(character);
        if (!words.characters()[c].is(Character::alone)) tokens.push_back("##" + character);
    }
    return tokens;
}

}  // namespace

Vocabulary train_vocabulary(const WordCounts& words, int size, const TrainerOptions& options,
                            const TrainingProgress& progress) {
    check("min_count", options.min_count, 1);
    check("max_word", options.max_word, 1);
    check("the size of a vocabulary with special tokens", size, int(std::size(special_tokens)) + 1);
    if (words.different() == 0)
        throw TokenizerError("the text is empty: there are no words to learn a vocabulary from");
    Vocabulary tokens;
    for (const char* token : special_tokens) tokens.add(token);
    for (const std::string& token : alphabet(words, options.min_count))
        if (tokens.size() < size) tokens.add(token);

    Merger merger(tokens, options.min_count);
    std::vector<int> cut;
    std::string piece;
    words.each([&](std::string_view word, std::int64_t count) {
        cut.clear();
        each_character(word, [&](char32_t, std::string_view c) {
            piece.assign(cut.empty() ? "" : "##").append(c);
            cut.push_back(tokens.id(piece));
        });
        // Skips words that encoding turns into [UNK], because they are too long or have a character that is not a
        // token: their pieces would never be used.
        bool unknown = std::count(cut.begin(), cut.end(), -1) > 0;
        if (!unknown && cut.size() <= std::size_t(options.max_word)) merger.add(cut, count);
    });
    const int first = tokens.size();
    merger.run(size, [&] { progress(double(tokens.size() - first) / std::max(1, size - first)); });
    return tokens;
}

Vocabulary train_vocabulary(const Strings& lines, int size, const TrainerOptions& options) {
    WordCounts words(options);
    for (const std::string& line : lines) words.add(line);
    return train_vocabulary(words, size, options);
}

}  // namespace masquerade

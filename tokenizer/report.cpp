// SPDX-License-Identifier: MIT
#include "tokenizer/report.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

using Item = TextReport::Item;

constexpr int longest_shown = 24;  // characters of a word

// A tokenizer for words that are normalised already.
WordPiece for_words(const WordPiece& tokenizer) {
    WordPiece::Options options = tokenizer.options();
    options.lower = options.clean = options.split_ideographs = options.single_digits = false;
    options.strip_accents = false;
    options.replace.clear();
    options.recognise_special = false;
    return WordPiece(tokenizer.vocabulary(), options);
}

bool is_letter(char32_t c) { return is_word_character(c) && !(c >= '0' && c <= '9') && c != '_'; }

void keep_most(std::vector<Item>& items, int most) {
    std::size_t kept = std::min(items.size(), std::size_t(std::max(most, 0)));
    auto more = [](const Item& a, const Item& b) {
        return a.count != b.count ? a.count > b.count : a.text < b.text;
    };
    std::partial_sort(items.begin(), items.begin() + std::ptrdiff_t(kept), items.end(), more);
    items.resize(kept);
}

// 1,234,567
std::string grouped(std::int64_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

std::string fixed(double value, int decimals) {
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
    return digits;
}

std::string code_of(char32_t c) {
    char code[16];
    std::snprintf(code, sizeof code, "U+%04X", unsigned(c));
    return code;
}

// A long word is cut; what cannot be seen is written as U+XXXX.
std::string shown(std::string_view text) {
    static const Characters reference{NormaliseOptions{}};
    std::string out;
    int length = 0;
    each_character(text, [&](char32_t c, std::string_view bytes) {
        if (length++ >= longest_shown) return;
        Character what = reference[c];
        bool seen = !what.is(Character::drop) && !what.is(Character::space) &&
                    !(what.is(Character::mark) && bytes.size() == text.size());
        out += seen ? std::string(bytes) : code_of(c);
    });
    return length > longest_shown ? out + "…" : out;
}

// An item a line: how often, its code if it is a character, and its text.
std::string list(const char* title, const std::vector<Item>& items, bool with_code) {
    std::string out = items.empty() ? "" : "\n" + std::string(title) + ":\n";
    for (const Item& item : items) {
        std::string count = grouped(item.count), text = shown(item.text);
        std::string code = with_code ? code_of(decode_utf8(item.text, 0).value) : "";
        out += std::string(12 - std::min<std::size_t>(count.size(), 12), ' ') + count + "  ";
        out += (text == code || code.empty() ? text : code + ' ' + text) + '\n';
    }
    return out;
}

}  // namespace

TextReport report(const WordCounts& words, const WordPiece& tokenizer, int most) {
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    TextReport r;
    r.lines = words.lines();
    r.bytes = words.bytes();
    r.words = words.words();
    r.different_words = std::int64_t(words.different());
    const WordPiece plain = for_words(tokenizer);
    Encoder encoder(plain, 1);
    std::vector<int> ids;
    std::vector<bool> used(std::size_t(vocabulary.size()));
    std::unordered_map<char32_t, std::int64_t> characters;
    words.each([&](std::string_view word, std::int64_t count) {
        ids.clear();
        encoder.append(word, ids);
        for (int id : ids) used[std::size_t(id)] = true;
        std::int64_t tokens = count * std::int64_t(ids.size());
        r.tokens += tokens;
        bool letters = true;
        each_character(word, [&](char32_t c, std::string_view) {
            characters[c] += count;
            letters = letters && is_letter(c);
        });
        if (letters) {
            r.letter_words += count;
            r.letter_tokens += tokens;
        }
        if (std::count(ids.begin(), ids.end(), vocabulary.unk()) > 0) {
            r.unknown_words += count;
            r.unknown.push_back({std::string(word), count});
        } else if (ids.size() == 1) {
            r.whole_words += count;
        }
    });
    for (const auto& [c, count] : characters) {
        std::string character;
        append_utf8(character, c);
        r.characters += count;
        if (vocabulary.id(character) >= 0 || vocabulary.id("##" + character) >= 0)
            r.covered_characters += count;
        else
            r.uncovered.push_back({character, count});
    }
    for (int id = 0; id < vocabulary.size(); id++) {
        if (vocabulary.is_special(id)) continue;
        r.vocabulary++;
        r.used += used[std::size_t(id)];
    }
    keep_most(r.unknown, most);
    keep_most(r.uncovered, most);
    return r;
}

std::string format(const TextReport& r) {
    std::string out;
    auto row = [&](std::string_view name, const std::string& value, const std::string& note = {}) {
        out.append(name)
            .append(45 - std::min<std::size_t>(name.size() + value.size(), 44), ' ')
            .append(value);
        out += (note.empty() ? "" : "   " + note) + "\n";
    };
    auto percent = [](double share) { return fixed(100 * share, 2) + " %"; };
    row("lines", grouped(r.lines));
    row("words", grouped(r.words), grouped(r.different_words) + " different");
    row("tokens", grouped(r.tokens));
    row("characters", grouped(r.characters), "without white space");
    row("bytes", grouped(r.bytes));
    row("tokens per word", fixed(r.tokens_per_word(), 3),
        fixed(r.tokens_per_letter_word(), 3) + " for words of letters");
    row("tokens per line", fixed(r.tokens_per_line(), 2));
    row("bytes per token", fixed(r.bytes_per_token(), 2));
    row("words of one token", percent(r.whole_share()));
    row("words with [UNK]", percent(r.unknown_share()), grouped(r.unknown_words) + " words");
    row("characters covered", percent(r.coverage()),
        "all but " + grouped(r.characters - r.covered_characters));
    row("vocabulary used", percent(r.used_share()),
        grouped(r.used) + " of " + grouped(r.vocabulary) + " tokens");
    out += list("words with [UNK], the most frequent first", r.unknown, false);
    out += list("characters that are not covered", r.uncovered, true);
    return out;
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "tokenizer/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "input/utf8.h"

namespace masquerade {

namespace {

// Minus the number of times that a text occurs, and the text. Sorted, the most frequent item comes first.
using Item = std::pair<std::int64_t, std::string>;

constexpr std::size_t longest_shown = 24;  // maximum number of characters of a word that are printed

// Returns a tokenizer with the same pieces, but without normalisation and added tokens, because the counted words are
// normalised, and lie between the added tokens.
WordPiece for_words(const WordPiece& tokenizer) {
    WordPiece::Options options = tokenizer.options();
    options.lower = options.clean = options.split_ideographs = options.recognise_special = false;
    options.strip_accents = false;
    options.replace.clear();
    std::vector<AddedToken> added = tokenizer.added();
    for (AddedToken& token : added) token.special = true;
    return WordPiece(tokenizer.vocabulary(), options, std::move(added));
}

// Groups digits by three: 1,234,567.
std::string grouped(std::int64_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

std::string code_of(char32_t c) { return fmt::format("U+{:04X}", std::uint32_t(c)); }

// Shortens a long word and writes invisible characters as U+XXXX.
std::string shown(std::string_view text) {
    static const Characters reference{NormaliseOptions{}};
    std::string out;
    std::size_t length = 0;
    each_character(text, [&](char32_t c, std::string_view bytes) {
        if (length++ >= longest_shown) return;
        Character what = reference[c];
        bool seen = !what.is(Character::drop) && !what.is(Character::space) &&
                    !(what.is(Character::mark) && bytes.size() == text.size());
        out += seen ? std::string(bytes) : code_of(c);
    });
    return length > longest_shown ? out + "…" : out;
}

// Lists the `most` most frequent items, one per line: the count, the code point if with_code, and the text.
std::string list(const char* title, std::vector<Item> items, int most, bool with_code) {
    std::sort(items.begin(), items.end());
    if (items.size() > std::size_t(most)) items.resize(most);
    std::string out = items.empty() ? "" : "\n" + std::string(title) + ":\n";
    for (const auto& [minus_count, whole] : items) {
        std::string text = shown(whole);
        std::string code = with_code ? code_of(decode_utf8(whole, 0).value) : "";
        out +=
            fmt::format("{:>12}  {}\n", grouped(-minus_count), text == code || code.empty() ? text : code + ' ' + text);
    }
    return out;
}

}  // namespace

std::string report(const WordCounts& words, const WordPiece& tokenizer, int most) {
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    std::int64_t tokens = 0, whole_words = 0, unknown_words = 0, all_characters = 0, covered = 0;
    std::vector<Item> unknown, uncovered;
    const WordPiece plain = for_words(tokenizer);
    Encoder encoder(plain, 1);
    Tokens ids;
    std::vector<bool> is_used(vocabulary.size());
    std::unordered_map<char32_t, std::int64_t> characters;
    words.each([&](std::string_view word, std::int64_t count) {
        ids.clear();
        encoder.append(word, ids);
        for (int id : ids) is_used[id] = true;
        tokens += count * ids.size();
        each_character(word, [&](char32_t c, std::string_view) { characters[c] += count; });
        if (std::count(ids.begin(), ids.end(), vocabulary.unk()) > 0) {
            unknown_words += count;
            unknown.push_back({-count, std::string(word)});
        } else if (ids.size() == 1) {
            whole_words += count;
        }
    });
    for (const auto& [id, count] : words.added()) {
        is_used[id] = true;
        tokens += count;
        whole_words += count;
        each_character(vocabulary.token(id), [&](char32_t c, std::string_view) {
            if (c == ' ') return;
            all_characters += count;
            covered += count;
        });
    }
    for (const auto& [c, count] : characters) {
        const std::string character = to_utf8(std::u32string(1, c));
        all_characters += count;
        if (vocabulary.id(character) >= 0 || vocabulary.id("##" + character) >= 0)
            covered += count;
        else
            uncovered.push_back({-count, character});
    }
    int usable = 0, used = 0;  // usable: tokens that are not special; used: usable tokens that occur in the text
    for (int id = 0; id < vocabulary.size(); id++) {
        usable += !vocabulary.is_special(id);
        used += !vocabulary.is_special(id) && is_used[id];
    }

    std::string out;
    auto row = [&](const std::string& name, const std::string& value, const std::string& note = {}) {
        out += fmt::format("{}{:>{}}{}{}\n", name, value, 45 - name.size(), note.empty() ? "" : "   ", note);
    };
    auto ratio = [](std::int64_t a, std::int64_t b) { return b == 0 ? 0 : double(a) / double(b); };
    auto percent = [&](std::int64_t a, std::int64_t b) { return fmt::format("{:.2f} %", 100 * ratio(a, b)); };
    row("lines", grouped(words.lines()));
    row("words", grouped(words.words()), grouped(words.different()) + " different");
    row("tokens", grouped(tokens));
    row("characters", grouped(all_characters), "without white space");
    row("bytes", grouped(words.bytes()));
    row("tokens per word", fmt::format("{:.3f}", ratio(tokens, words.words())));
    row("bytes per token", fmt::format("{:.2f}", ratio(words.bytes(), tokens)));
    row("words of one token", percent(whole_words, words.words()));
    row("words with [UNK]", percent(unknown_words, words.words()), grouped(unknown_words) + " words");
    row("characters covered", percent(covered, all_characters), "all but " + grouped(all_characters - covered));
    row("vocabulary used", percent(used, usable), grouped(used) + " of " + grouped(usable) + " tokens");
    out += list("words with [UNK], the most frequent first", std::move(unknown), most, false);
    out += list("characters that are not covered", std::move(uncovered), most, true);
    return out;
}

}  // namespace masquerade

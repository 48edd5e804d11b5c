// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary_notes.h"

#include <algorithm>
#include <cstdio>

#include "tokenizer/added_tokens.h"
#include "tokenizer/normalise.h"
#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

// What is not seen, as its code points.
std::string in_quotes(std::string_view token) {
    std::string shown = "\"";
    for (std::size_t at = 0; at < token.size();) {
        CodePoint c = decode_utf8(token, at);
        std::size_t length = std::size_t(std::max(c.length, 1));
        if (c.value < 0x7F || stands_alone(c.value) || is_word_character(c.value)) {
            shown += token.substr(at, length);
        } else {
            char number[16];
            std::snprintf(number, sizeof number, "<U+%04X>", unsigned(c.value));
            shown += number;
        }
        at += length;
    }
    return shown + '"';
}

// Lines of one kind: the number of them, and the first few.
struct Lines {
    static constexpr int shown = 3;
    int count = 0;
    std::string first;

    void add(int id, std::string_view token) {
        if (count++ < shown)
            (first += first.empty() ? "" : ", ") += std::to_string(id + 1) + ' ' + in_quotes(token);
    }
    // " (lines 5 "a", 7 "b" ...)"
    std::string where() const {
        return std::string(count == 1 ? " (line " : " (lines ") + first + (count > shown ? " ...)" : ")");
    }
};

void note(std::vector<std::string>& notes, const Lines& lines, const char* one, const char* many) {
    if (lines.count > 0)
        notes.push_back(std::to_string(lines.count) + ' ' + (lines.count == 1 ? one : many) + lines.where());
}

// "[CLS]", "[unused7]": found by name, not in text.
bool is_reserved(const std::string& token) {
    return token.size() > 2 && token.front() == '[' && token.back() == ']';
}

bool has_capital(const std::string& token) {
    return std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

std::vector<std::string> vocabulary_notes(const Vocabulary& vocabulary, const NormaliseOptions& options) {
    std::vector<std::string> notes;
    std::string missing;
    for (const char* token : special_tokens)
        if (vocabulary.id(token) < 0) missing += (missing.empty() ? "" : ", ") + std::string(token);
    if (!missing.empty()) notes.push_back("there is no " + missing);

    Characters characters(options);
    Words words(characters);
    // The words of a text: how many, and whether its only one is the text itself.
    auto count_words = [&](const std::string& text, bool& same) {
        int count = 0;
        same = false;
        for (words.begin(text); words.next(); count++) same = count == 0 && words.text() == text;
        return count;
    };
    Lines equal, blank, reserved, split, changed, inside;
    for (int id = 0; id < vocabulary.size(); id++) {
        const std::string& token = vocabulary.token(id);
        bool later = continues(token), same = false;
        std::string text = later ? token.substr(2) : token;
        int last = vocabulary.id(token);
        if (last != id) equal.add(id, token);
        int count = count_words(text, same);
        if (is_reserved(token)) {
            reserved.add(id, token);
        } else if (count == 0) {
            blank.add(id, token);
        } else if (count > 1 || !same) {
            (count > 1 ? split : changed).add(id, token);
        } else if (later) {
            int together = count_words("a" + text, same);
            if (together > 1)
                inside.add(id, token);
            else if (!same)
                changed.add(id, token);
        }
    }
    note(notes, equal, "token stands again further down, and has the id of there",
         "tokens stand again further down, and have the ids of there");
    note(notes, blank, "token is blank and is never found", "tokens are blank and are never found");
    note(notes, inside,
         "token continues a word with a character that is always a word by itself, and is never found",
         "tokens continue a word with a character that is always a word by itself, and are never found");
    note(notes, split, "token is several words and is never found",
         "tokens are several words each and are never found");
    note(notes, changed, "token holds what normalised text does not, and is never found",
         "tokens hold what normalised text does not, and are never found");
    note(notes, reserved, "token in brackets is left to be asked for by name",
         "tokens in brackets are left to be asked for by name");
    return notes;
}

// One letter of a kind may stand in a vocabulary of the other case by chance.
std::string casing_note(const Vocabulary& vocabulary, bool lower) {
    int words = 0, capitals = 0;
    for (int id = 0; id < vocabulary.size(); id++) {
        const std::string& token = vocabulary.token(id);
        bool letters = std::any_of(token.begin(), token.end(),
                                   [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
        if (is_reserved(token) || !letters) continue;
        words++;
        capitals += has_capital(token);
    }
    std::string count =
        std::to_string(capitals) + " of " + std::to_string(words) + " tokens with letters have capital ones";
    if (lower && capitals * 20 > words)
        return count + ", yet text is lower-cased: is this a cased vocabulary?";
    if (!lower && words >= 100 && capitals * 1000 < words)
        return count +
               ", yet text keeps its capitals, and most words with them become [UNK]: is this an uncased "
               "vocabulary?";
    return "";
}

}  // namespace masquerade

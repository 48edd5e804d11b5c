// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary_notes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "input/input.h"
#include "input/utf8.h"
#include "tokenizer/normalise.h"

namespace masquerade {

namespace {

// Counts the lines with one kind of defect and lists the first three of these lines.
struct Lines {
    int count = 0;
    std::string first;

    void add(int id, const std::string& token) {
        if (count++ < 3) first += (first.empty() ? "" : ", ") + std::to_string(id + 1) + ' ' + in_words(token);
    }
    void note(const char* what, Strings& notes) const {
        if (count > 0)
            notes.push_back(std::to_string(count) + ' ' + what + " (lines " + first + (count > 3 ? " ...)" : ")"));
    }
};

// Whether the token is in brackets, such as "[CLS]" and "[unused7]". Programs use these tokens by name. In text, the
// brackets are words by themselves, so a token in brackets is found only if it is recognised as an added token.
bool is_reserved(const std::string& token) { return token.size() > 2 && token.front() == '[' && token.back() == ']'; }

// Whether the token has several characters, and one of them is always a word by itself. (The "##" at the beginning of a
// token is not regarded as such a character.)
bool holds_what_stands_alone(std::string_view token, const Characters& characters) {
    if (code_points(token).size() == 1 && is_utf8(token)) return false;
    const std::u32string text = code_points(token.substr(continues(token) ? 2 : 0));
    return std::any_of(text.begin(), text.end(), [&](char32_t c) { return characters[c].is(Character::alone); });
}

}  // namespace

Strings vocabulary_notes(const WordPiece& tokenizer) {
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    Strings notes;
    std::string missing;
    for (const char* token : special_tokens)
        if (vocabulary.id(token) < 0) missing += (missing.empty() ? "" : ", ") + std::string(token);
    if (!missing.empty()) notes.push_back("there is no " + missing);

    NormaliseOptions options = tokenizer.options();
    options.replace.clear();  // the tokens are parts of texts in which characters have been replaced already
    Characters characters(options);
    Words words(characters);
    std::set<int> recognised;
    for (const AddedToken& token : tokenizer.added())
        if (tokenizer.recognises(token)) recognised.insert(token.id);
    auto is_one_word = [&](const std::string& text) {
        words.begin(text);
        return words.next() && words.text() == text && !words.next();
    };
    Lines equal, never;
    for (int id = 0; id < vocabulary.size(); id++) {
        const std::string& token = vocabulary.token(id);
        bool later = continues(token);
        if (vocabulary.id(token) != id) equal.add(id, token);
        if (is_reserved(token) || recognised.count(id) > 0) continue;
        if (token == "##" || !is_one_word(later ? "a" + token.substr(2) : token)) never.add(id, token);
    }
    equal.note("tokens occur again further down, and have the last of their ids", notes);
    never.note("tokens never match: no text gives such a word or such a part of a word", notes);
    return notes;
}

// The thresholds tolerate a few tokens with unexpected case.
std::string casing_note(const Vocabulary& vocabulary, bool lower) {
    int words = 0, capitals = 0;
    auto any = [](const std::string& token, auto is) { return std::any_of(token.begin(), token.end(), is); };
    for (const std::string& token : vocabulary.tokens()) {
        if (is_reserved(token)) continue;
        words += any(token, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
        capitals += any(token, [](char c) { return c >= 'A' && c <= 'Z'; });
    }
    std::string count =
        std::to_string(capitals) + " of " + std::to_string(words) + " tokens with letters have capital ones";
    if (lower && capitals * 20 > words) return count + ", yet text is lower-cased: is this a cased vocabulary?";
    if (!lower && words >= 100 && capitals * 1000 < words)
        return count +
               ", yet text keeps its capitals, and most words with them become [UNK]: is this an uncased "
               "vocabulary?";
    return "";
}

Simplified simplify(const Vocabulary& vocabulary, const Strings& first, const NormaliseOptions& options) {
    // Lower-casing and accent stripping are off. Otherwise, U+2260 (not equal), which is not a punctuation mark, would
    // become an equals sign, which counts as a punctuation mark.
    NormaliseOptions kept = options;
    kept.lower = false;
    kept.strip_accents = false;
    kept.replace.clear();
    const Characters characters(kept);
    std::vector<bool> taken(vocabulary.size());
    Strings tokens;
    std::vector<int> keep_tokens;
    auto take = [&](int id) {
        taken[id] = true;
        tokens.push_back(vocabulary.token(id));
        keep_tokens.push_back(id);
    };
    for (const std::string& token : first) {
        int id = vocabulary.id(token);
        if (id < 0) throw TokenizerError("the vocabulary has no token \"", token, "\", which is to come first");
        if (taken[id]) throw TokenizerError("the token \"", token, "\" is to come first twice");
        take(id);
    }
    for (int id = 0; id < vocabulary.size(); id++) {
        const std::string& token = vocabulary.token(id);
        if (vocabulary.id(token) == id && !taken[id] && !holds_what_stands_alone(token, characters)) take(id);
    }
    return {Vocabulary(std::move(tokens)), std::move(keep_tokens)};
}

}  // namespace masquerade

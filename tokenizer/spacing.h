// SPDX-License-Identifier: MIT
// Restores the spaces that encoding lost. Two words of letters need a space between them; without it, they would have
// been one word. Next to punctuation and ideographs, a table of rules guesses whether there was a space, for English,
// Chinese, file names, versions and addresses.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// The sides of a sign (a punctuation mark or symbol) that have no space.
struct Hold {
    bool left = false, right = false;
};

struct SpacedWord {
    // ordinary: a word. alone: one character that is always a word by itself. guarded: an added token that encoding
    // does not recognise next to letters or digits.
    enum class Kind : char { ordinary, alone, guarded };

    std::string text;  // empty: there is no word, before the first or after the last
    Kind kind = Kind::ordinary;
    char32_t first = 0, last = 0;  // first and last character of text
    Hold hold = {};

    bool alone() const { return kind == Kind::alone; }
    char32_t sign() const { return alone() ? first : 0; }
    bool letters() const { return first != 0 && !alone(); }  // letters or digits
    bool number() const;                                     // digits 0-9
};

// Joins words with the spaces that a writer would put. A space stays if, without it, the joined words would contain a
// text of `never`.
std::string with_spaces(std::vector<SpacedWord> words, const std::vector<std::string>& never);

inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

}  // namespace masquerade

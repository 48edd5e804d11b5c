// SPDX-License-Identifier: MIT
// Restores the spaces that encoding lost. Between two words of letters there must have been one, or they would be a
// single word. Next to punctuation and ideographs there may have been one: a table of rules guesses, for English,
// Chinese, file names, versions and addresses.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// The sides of a sign that have no space.
struct Hold {
    bool left = false, right = false;
};

struct SpacedWord {
    // ordinary: a word; alone: one character that is always a word by itself; guarded: an added token that is not
    // recognised next to letters or digits.
    enum class Kind : char { ordinary, alone, guarded };

    std::string text;  // empty: past an end of the line
    Kind kind = Kind::ordinary;
    char32_t first = 0, last = 0;  // first and last character of text
    Hold hold = {};

    bool alone() const { return kind == Kind::alone; }
    char32_t sign() const { return alone() ? first : 0; }
    bool letters() const { return first != 0 && !alone(); }  // letters or digits
    bool number() const;                                     // digits 0-9
};

// Joins words with the spaces that a writer would put. never: texts that must not arise from words written without a
// space.
std::string with_spaces(std::vector<SpacedWord> words, const std::vector<std::string>& never);

inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

}  // namespace masquerade

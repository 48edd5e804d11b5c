// SPDX-License-Identifier: MIT
// Restores the spaces that encoding lost. If two words of letters are neighbours, there was a space between them,
// because encoding would otherwise have found one word. Next to punctuation, a table of rules guesses whether there was
// a space; the rules cover English, Chinese, file names, version numbers and addresses. Ideographs have no spaces
// around them.
#pragma once
#include "tokenizer/vocabulary.h"

namespace masquerade {

// The sides of a sign (a punctuation mark or symbol) on which no space is written.
struct Hold {
    bool left = false, right = false;
};

struct SpacedWord {
    // alone: one character that is always a word by itself, except a digit. guarded: an added token that encoding does
    // not recognise next to a word character, such as a letter or a digit. ordinary: any other word.
    enum class Kind : char { ordinary, alone, guarded };

    std::string text;  // empty only for the missing neighbour of the first or last word
    Kind kind = Kind::ordinary;
    char32_t first = 0, last = 0;  // first and last code point of text
    Hold hold = {};

    bool alone() const { return kind == Kind::alone; }
    char32_t sign() const { return alone() ? first : 0; }
    bool letters() const { return first != 0 && !alone(); }  // whether it is a word of kind ordinary or guarded
    bool number() const;                                     // whether it consists of digits 0-9
};

// Joins words with the spaces that a human writer would probably put. Two words always have a space between them if
// the joined words would otherwise contain a text of `never`.
std::string with_spaces(std::vector<SpacedWord> words, const Strings& never);

inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

}  // namespace masquerade

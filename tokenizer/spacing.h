// SPDX-License-Identifier: MIT
// The spaces that encoding lost. Between two words of letters there was one, or they would have been one
// word. Punctuation and ideographs are words with or without spaces beside them: a table of rules guesses what
// writers of English, of Chinese, of file names, versions and addresses would have done.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// The sides of a sign at which there is no space.
struct Hold {
    bool left = false, right = false;
};

struct SpacedWord {
    // An ordinary word, one character that is always a word by itself, or a token that is not recognised where letters
    // or digits touch it.
    enum class Kind : char { ordinary, alone, guarded };

    std::string text;  // empty: no word, it is past an end of the line
    Kind kind = Kind::ordinary;
    char32_t first = 0, last = 0;  // its outer characters
    Hold hold = {};

    bool alone() const { return kind == Kind::alone; }
    char32_t sign() const { return alone() ? first : 0; }
    bool letters() const { return first != 0 && !alone(); }  // or digits
    bool number() const;                                     // digits 0-9
};

// The words as a writer would space them. never: texts that may not arise from words written without a space.
std::string with_spaces(std::vector<SpacedWord> words, const std::vector<std::string>& never);

inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Wraps long lines between words, because a terminal would break them inside words.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "input/utf8.h"

namespace masquerade {

// Returns the number of characters of a text in UTF-8.
inline int characters_in(std::string_view text) {
    return int(std::count_if(text.begin(), text.end(), starts_code_point));
}

// Wraps every line of `text` (UTF-8) to at most `columns` characters. Continuation lines are indented by `hang` columns
// more than the original line. Words longer than a line are not broken. Spaces between words are kept, except at a
// line break.
inline std::string wrapped(const std::string& text, int columns, int hang = 2) {
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::size_t margin = std::min(text.find_first_not_of(' ', begin), end) - begin;
        const std::string next_margin = '\n' + std::string(margin + hang, ' ');
        std::size_t at = begin + margin;
        int used = int(margin);
        out.append(margin, ' ');
        while (at < end) {
            const std::size_t word = std::min(text.find_first_not_of(' ', at), end);
            const std::size_t after = std::min(text.find(' ', word), end);
            const int length = characters_in(std::string_view(text).substr(word, after - word));
            if (used + int(word - at) + length > columns && at > begin + margin && word < after) {
                out += next_margin;
                used = int(margin) + hang;
            } else {
                out.append(text, at, word - at);
                used += int(word - at);
            }
            out.append(text, word, after - word);
            used += length;
            at = after;
        }
        if (end < text.size()) out += '\n';
        begin = end + 1;
    }
    return out;
}

}  // namespace masquerade

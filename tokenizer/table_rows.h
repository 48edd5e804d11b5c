// SPDX-License-Identifier: MIT
// Reads the tables in characters_table.h. The comment at the top of that file describes their format.
#pragma once
#include <map>
#include <string>

#include "tokenizer/characters_table.h"

namespace masquerade::unicode {

using Map = std::map<char32_t, std::u32string>;  // code point -> the text that it becomes

inline std::u32string numbers(std::string_view table) {
    std::u32string all;
    char32_t number = 0;
    for (char digit : table) {
        if (digit >= 'a') {
            number = 26 * number + char32_t(digit - 'a');
        } else if (digit >= 'A') {
            all += 26 * number + char32_t(digit - 'A');
            number = 0;
        }
    }
    return all;
}

// Calls use(first code point, last code point, value) for each range of code points in a table of the kind `values`,
// which gives all code points of a range the same value.
template <class Use>
void each_range(std::string_view table, Use use) {
    const std::u32string rows = numbers(table);
    char32_t next = 0;
    for (std::size_t i = 0; i < rows.size(); i += 3) {
        const char32_t first = next + rows[i];
        next = first + rows[i + 1];
        use(first, next - 1, rows[i + 2]);
    }
}

// Sets the entries of `map` for all code points in a table of the kind `changes`, which gives each code point the text
// that it becomes.
inline void add(std::string_view table, Map& map) {
    const std::u32string rows = numbers(table);
    char32_t c = 0;
    for (std::size_t i = 0, end; i < rows.size(); i = end + 1, c++) {
        c += rows[i];
        end = rows.find(U'\0', i + 1);
        map[c] = rows.substr(i + 1, end - i - 1);
    }
}

}  // namespace masquerade::unicode

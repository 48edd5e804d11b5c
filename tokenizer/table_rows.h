// SPDX-License-Identifier: MIT
// Reads the tables of characters_table.h, whose rows are ranges of code points.
#pragma once
#include <map>
#include <string>

#include "tokenizer/characters_table.h"

namespace masquerade::unicode {

using Map = std::map<char32_t, std::u32string>;  // code point -> the text that it becomes

// Calls use(first code point, last code point, value) for each row.
template <std::size_t n, class Use>
void each_run(const unicode::Run (&runs)[n], Use use) {
    char32_t first = 0;
    for (const unicode::Run& run : runs) {
        first += run.skipped;
        use(first, first + run.length - 1, run.value);
        first += run.length;
    }
}

template <std::size_t n>
void add(const unicode::Shift (&shifts)[n], Map& map) {
    for (const unicode::Shift& shift : shifts)
        for (std::uint32_t i = 0, c = shift.first; i < shift.count; i++, c += shift.step)
            map[c] = char32_t(c + std::uint32_t(shift.offset));
}

template <std::size_t n>
void add(const unicode::Change (&changes)[n], Map& map) {
    for (const unicode::Change& change : changes) {
        char32_t c = change.first;
        map[c].clear();
        for (char32_t to : change.to) {
            if (to == ' ')
                map[++c].clear();
            else
                map[c] += to;
        }
    }
}

}  // namespace masquerade::unicode

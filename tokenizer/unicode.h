// SPDX-License-Identifier: MIT
// What the tokenizer knows of Unicode: for each code point a few flags, and what lower-casing, canonical
// decomposition and stripping of marks make of it. The data is unicode_table.h, written by
// tools/unicode/make_table.py.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

// One code point, in 32 bits.
struct Character {
    enum Flag : std::uint32_t {
        drop = 1,           // NUL, U+FFFD, control and format characters: removed from the text
        space = 2,          // separates words
        alone = 4,          // ideographs and punctuation: a word by itself
        alone_lowered = 8,  // the same once lower-cased: U+2260, not equal, decomposes to "=" and a mark
        mark = 16,          // category Mn: stripped in lower case
        cased = 32,         // has case, and is not ignorable
        ignorable = 64,     // Unicode's Case_Ignorable: a final sigma looks past it
        nonstarter = 128,   // it, or all it decomposes to, has a canonical combining class but 0
        expands = 256,      // becomes several code points: `to` is a row of the table of expansions
    };
    std::uint32_t to : 22, flags : 10;  // to: what it becomes in lower case; 0: itself
    bool is(Flag flag) const { return flags & flag; }
};

class Unicode {
  public:
    static const Unicode& data();
    static const char* version();

    Character operator[](char32_t c) const { return characters_[block_of_[c >> 8] * 256u + (c & 0xFF)]; }

    // The lower-case form, ending with 0, of a character that `expands`: 2 or 3 code points.
    const char32_t* expansion(Character c) const;

    // Canonical combining class of the nonstarters that stripping leaves (there are 25, none of category Mn).
    static int combining_class(char32_t c);

  private:
    Unicode();
    Character& make(char32_t c);  // its entry, in a block of its own
    void share_equal_blocks();

    std::vector<Character> characters_;    // blocks of 256 code points
    std::vector<std::uint16_t> block_of_;  // 0: the block in which nothing changes
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The ranges of unicode_table.h, spread into a table of two stages: under 200 kB, two loads a code point.
#include "tokenizer/unicode.h"

#include <cstring>
#include <utility>

#include "tokenizer/unicode_table.h"

namespace masquerade {

const Unicode& Unicode::data() {
    static const Unicode unicode;
    return unicode;
}

const char* Unicode::version() { return unicode_data_version; }

Unicode::Unicode() : characters_(256), block_of_(0x110000 / 256) {
    for (const FlagRange& r : flag_ranges)
        for (char32_t c = r.first; c <= r.last; c++) make(c).flags = r.flags & 0x3FF;
    for (const ShiftRange& r : shift_ranges)
        for (char32_t c = r.first; c <= r.last; c += char32_t(r.step))
            make(c).to = (c + char32_t(r.shift)) & 0x3FFFFF;
    std::uint32_t row = 0;
    for (const Expansion& e : expansions) make(e.from).to = row++ & 0x3FFFFF;
    share_equal_blocks();
}

Character& Unicode::make(char32_t c) {
    std::uint16_t& block = block_of_[c >> 8];
    if (block == 0) {
        block = std::uint16_t(characters_.size() / 256);
        characters_.resize(characters_.size() + 256);
    }
    return characters_[block * 256u + (c & 0xFF)];
}

// Ideographs fill hundreds of blocks that are all the same: neighbours that are equal become one.
void Unicode::share_equal_blocks() {
    std::vector<Character> kept(characters_.begin(), characters_.begin() + 256);
    for (std::uint16_t& block : block_of_) {
        if (block == 0) continue;
        const Character* entries = &characters_[block * 256u];
        if (std::memcmp(entries, &kept[kept.size() - 256], 256 * sizeof(Character)) != 0)
            kept.insert(kept.end(), entries, entries + 256);
        block = std::uint16_t(kept.size() / 256 - 1);
    }
    characters_ = std::move(kept);
}

const char32_t* Unicode::expansion(Character c) const { return expansions[c.to].to; }

int Unicode::combining_class(char32_t c) {
    for (const CombiningClass& k : combining_classes)
        if (k.c == c) return k.value;
    return 0;
}

}  // namespace masquerade

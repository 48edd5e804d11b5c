// SPDX-License-Identifier: MIT
// A table with an entry of type T for every code point. Each entry is T() at first. A lookup takes two memory loads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace masquerade {

template <class T>
class CodePointTable {
  public:
    T operator[](char32_t c) const { return entries_[block_of_[c / block] * block + c % block]; }

    // Returns the entry of c; the caller may change it. The reference is valid until the next call of at().
    T& at(char32_t c) {
        std::uint16_t& number = block_of_[c / block];
        if (number == 0) {
            number = std::uint16_t(entries_.size() / block);
            entries_.resize(entries_.size() + block);
        }
        return entries_[number * block + c % block];
    }

    // Lets neighbouring blocks with equal entries share memory. After this, no entry may be changed.
    void share_equal_blocks() {
        std::vector<T> kept(entries_.begin(), entries_.begin() + block);
        for (std::uint16_t& number : block_of_) {
            if (number == 0) continue;
            const T* entries = &entries_[number * block];
            if (std::memcmp(entries, &kept[kept.size() - block], block * sizeof(T)) != 0)
                kept.insert(kept.end(), entries, entries + block);
            number = std::uint16_t(kept.size() / block - 1);
        }
        entries_ = std::move(kept);
    }

  private:
    static constexpr unsigned block = 256;

    // Blocks of 256 entries. The entry of code point c is in block block_of_[c / 256]. Block 0 is shared
    // by all ranges of 256 code points for which at() was never called.
    std::vector<T> entries_ = std::vector<T>(block);
    std::vector<std::uint16_t> block_of_ = std::vector<std::uint16_t>(0x110000 / block);
};

}  // namespace masquerade

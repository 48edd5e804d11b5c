// SPDX-License-Identifier: MIT
// Reads words of ASCII letters and digits eight bytes at a time, and caches the ids of short words.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace masquerade {

// Returns eight bytes of a line, from offset `at` on, as a number. The first byte is the lowest byte of the number.
// Bytes after the end of the line are 0.
inline std::uint64_t eight_bytes(std::string_view line, std::size_t at) {
    std::uint64_t x = 0;
    if (line.size() - at >= 8)
        std::memcpy(&x, line.data() + at, 8);
    else
        std::memcpy(&x, line.data() + at, line.size() - at);
    return x;
}

constexpr std::uint64_t every_byte(std::uint64_t byte) { return byte * 0x0101010101010101u; }

// In the returned number, the highest bit of byte i is set if byte i of x is in the range [first, last]. All other bits
// are 0. All bytes of x must be below 128.
constexpr std::uint64_t within(std::uint64_t x, unsigned first, unsigned last) {
    return (x + every_byte(0x80u - first)) & ~(x + every_byte(0x7Fu - last)) & every_byte(0x80);
}

// A word of ASCII letters and digits. low and high are its first 16 bytes, padded with zeros; read() converts them to
// lower case if `lower` is true. Two words of at most 16 bytes are equal if low and high are equal, because no word
// contains a zero byte.
struct PlainWord {
    std::size_t length = 0;
    std::uint64_t low = 0, high = 0;

    // Reads the letters (and digits, if `digits`) that begin at line[at].
    static PlainWord read(std::string_view line, std::size_t at, bool lower, bool digits) {
        PlainWord word;
        bool all = word.take(line, at, lower, digits, word.low) && word.take(line, at + 8, lower, digits, word.high);
        for (std::uint64_t rest; all;) all = word.take(line, at + word.length, lower, digits, rest);
        return word;
    }

  private:
    // Reads up to eight letters (and digits, if `digits`) from `at` on into `bytes`. Returns whether there were eight.
    bool take(std::string_view line, std::size_t at, bool lower, bool digits, std::uint64_t& bytes) {
        if (at >= line.size()) return false;
        std::uint64_t x = eight_bytes(line, at), seven = x & every_byte(0x7F);
        std::uint64_t letters = within(seven | every_byte(0x20), 'a', 'z');
        if (digits) letters |= within(seven, '0', '9');
        std::uint64_t ends = (~letters | x) & every_byte(0x80);
        if (lower) x |= (within(seven, 'A', 'Z') & ~x) >> 2;
        int taken = ends == 0 ? 8 : __builtin_ctzll(ends) / 8;
        bytes = taken == 8 ? x : x & ~(~std::uint64_t(0) << 8 * taken);
        length += std::size_t(taken);
        return taken == 8;
    }
};

// A cache of the ids of short words. A hash of the word chooses its slot; a new word overwrites the word in its slot.
class WordCache {
  public:
    static constexpr int longest = 16;  // maximum number of bytes of a cached word
    static constexpr int most = 4;      // maximum number of ids of a cached word

    struct Entry {
        std::uint64_t low = 0, high = 0;
        int ids[most] = {-1, -1, -1, -1};  // the list ends at the first -1
    };

    // The cache has 2^bits slots; bits is clamped to [1, 30].
    explicit WordCache(int bits)
        : entries_(std::size_t(1) << std::clamp(bits, 1, 30)), shift_(64 - std::clamp(bits, 1, 30)) {}

    // Returns the slot of a word. The slot may contain another word.
    Entry& place(const PlainWord& word) {
        std::uint64_t mixed = (word.low ^ (word.high << 29 | word.high >> 35)) * 0x9E3779B97F4A7C15u;
        mixed = (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15u;
        return entries_[std::size_t(mixed >> shift_)];
    }

  private:
    std::vector<Entry> entries_;
    int shift_;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Words of ASCII letters and digits, eight bytes at a time, and a bounded memory of how they were cut.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace masquerade {

// Eight bytes of a line from `at` on, the first one lowest; zeros past its end.
inline std::uint64_t eight_bytes(std::string_view line, std::size_t at) {
    std::uint64_t x = 0;
    if (line.size() - at >= 8)
        std::memcpy(&x, line.data() + at, 8);
    else
        std::memcpy(&x, line.data() + at, line.size() - at);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

constexpr std::uint64_t every_byte(std::uint64_t byte) { return byte * 0x0101010101010101u; }

// The highest bit of each byte that lies in [first, last]; all bytes of x are below 128.
constexpr std::uint64_t within(std::uint64_t x, unsigned first, unsigned last) {
    return (x + every_byte(0x80u - first)) & ~(x + every_byte(0x7Fu - last)) & every_byte(0x80);
}

// A run of letters and digits, up to 16 bytes of it in lower case and zeros: no two words have the same, since
// no word holds a zero.
struct PlainWord {
    std::size_t length = 0;
    std::uint64_t low = 0, high = 0;

    // The run that begins at line[at].
    static PlainWord read(std::string_view line, std::size_t at, bool lower, bool digits) {
        PlainWord word;
        bool all = word.take(line, at, lower, digits, word.low) && word.take(line, at + 8, lower, digits, word.high);
        for (std::uint64_t rest; all;) all = word.take(line, at + word.length, lower, digits, rest);
        return word;
    }

  private:
    // Letters from `at` on, at most eight; whether they are eight.
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

// Which ids short words have, each in the one place that its letters give it: the last word there stays.
class WordCache {
  public:
    static constexpr int longest = 16;  // bytes of a word
    static constexpr int most = 4;      // ids of a word

    struct Entry {
        std::uint64_t low = 0, high = 0;
        int ids[most] = {-1, -1, -1, -1};  // the first -1 ends them
    };

    // For 2^bits words, from 2 of them to 2^30.
    explicit WordCache(int bits)
        : entries_(std::size_t(1) << std::clamp(bits, 1, 30)), shift_(64 - std::clamp(bits, 1, 30)) {}

    // The place of a word, which holds it, or another one.
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

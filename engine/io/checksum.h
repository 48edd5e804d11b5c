// SPDX-License-Identifier: MIT
// A fast checksum that detects damage but not tampering. The 64-bit words of the data are distributed among four
// checksums (lanes), which are combined at the end. Each word costs one multiplication and one rotation. Every
// operation is invertible, so a change within a single word always changes the checksum.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace masquerade {

inline std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
    std::uint64_t x = (sum ^ word) * 0x9E3779B97F4A7C15ull;
    return x << 29 | x >> 35;
}

// Returns a checksum of `bytes` bytes and of `before`, the checksum of the preceding part of the data (0 if there is
// none). If the same data is cut into other parts, the checksum is different. The result is the same on all
// little-endian machines.
inline std::uint64_t checksum(const void* data, std::size_t bytes, std::uint64_t before) {
    const char* at = static_cast<const char*>(data);
    std::uint64_t lanes[4] = {1, 2, 3, 4}, words[4];
    auto take = [&](std::size_t count) {
        std::memcpy(words, at, count);
        for (int i = 0; i < 4; i++) lanes[i] = mixed(lanes[i], words[i]);
    };
    std::size_t left = bytes;
    for (; left >= sizeof words; left -= sizeof words, at += sizeof words) take(sizeof words);
    if (left > 0) {
        std::memset(words, 0, sizeof words);
        take(left);
    }
    std::uint64_t sum = mixed(before, bytes);
    for (std::uint64_t lane : lanes) sum = mixed(sum, lane);
    return sum;
}

inline std::string hexadecimal(std::uint64_t number) { return fmt::format("{:016x}", number); }

}  // namespace masquerade

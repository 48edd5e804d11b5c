// SPDX-License-Identifier: MIT
// A random order of the numbers 0 to n - 1 that needs no memory: each place is computed by itself. To shuffle a vector,
// use shuffle() (shuffle.h).
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/random.h"

namespace masquerade {

// A permutation of 0 to n - 1, which depends on the seed, the name and `number` (such as an epoch). It is a Feistel
// network: the bits of a number are divided into a left and a right half, and in turn each half is combined with random
// bits that depend on the other half. Such a network permutes the numbers below a power of two. Results from n on go
// through the network again until one is below n (cycle walking), which takes fewer than two passes on average.
class Permutation {
  public:
    Permutation(std::uint64_t n, std::uint64_t seed, std::string_view name, std::uint32_t number)
        : n_(n), random_(make_stream(seed, name, number)) {
        while (bits_ < 64 && (n - 1) >> bits_ > 0) bits_++;
    }

    std::uint64_t size() const { return n_; }
    // Returns the number at place i, for i < size().
    std::uint64_t operator[](std::uint64_t i) const {
        do i = pass(i);
        while (i >= n_);
        return i;
    }

  private:
    std::uint64_t pass(std::uint64_t i) const {
        const int low = bits_ / 2;
        std::uint32_t left = std::uint32_t(i >> low), right = std::uint32_t(i & mask(low));
        for (std::uint32_t round = 0; round < rounds; round += 2) {
            left ^= random_.at(right, round, 0)[0] & mask(bits_ - low);
            right ^= random_.at(left, round + 1, 0)[0] & mask(low);
        }
        return std::uint64_t(left) << low | right;
    }
    static std::uint32_t mask(int bits) { return std::uint32_t((std::uint64_t(1) << bits) - 1); }

    static constexpr std::uint32_t rounds = 24;  // with 16, the orders of seven numbers are not equally frequent
    std::uint64_t n_;
    Stream random_;
    int bits_ = 0;  // the smallest number of bits with which n - 1 can be written
};

}  // namespace masquerade

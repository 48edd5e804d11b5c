// SPDX-License-Identifier: MIT
// Philox 4x32-10 (Salmon et al. 2011): random numbers as a function of a key and a counter, without state. The number
// for one element of a tensor depends on the seed, the step, the name of the stream, and the element's document,
// position and channel (column), but not on where the document is in a batch. All functions but drawn() and normal()
// are constexpr, so that CUDA kernels can call them.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace masquerade {

struct Four {
    std::uint32_t v[4];
    constexpr std::uint32_t operator[](int i) const { return v[i]; }
};

constexpr Four philox(Four c, std::uint32_t key0, std::uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        std::uint64_t a = std::uint64_t(0xD2511F53u) * c.v[0], b = std::uint64_t(0xCD9E8D57u) * c.v[2];
        c = Four{{std::uint32_t(b >> 32) ^ c.v[1] ^ key0, std::uint32_t(b), std::uint32_t(a >> 32) ^ c.v[3] ^ key1,
                  std::uint32_t(a)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

// A stream of random numbers. Each use of random numbers has a separate stream. The keys come from the seed and from
// the name of the stream, such as the path of a tensor. `step` is usually the training step, so that each step gives
// new numbers.
struct Stream {
    std::uint32_t key0 = 0, key1 = 0;
    std::uint32_t step = 0;
    // Returns four random words of 32 bits, one for each of the channels (columns) 4*block to 4*block + 3.
    constexpr Four at(std::uint32_t document, std::uint32_t position, std::uint32_t block) const {
        return philox(Four{{block, position, document, step}}, key0, key1);
    }
};

// Returns the FNV-1a hash of a name. make_stream() derives the keys of a stream from the seed and the hash of the
// stream's name.
constexpr std::uint64_t hash_of(std::string_view name) {
    std::uint64_t h = 0xcbf29ce484222325ull;
    for (char c : name) h = (h ^ std::uint64_t((unsigned char)c)) * 0x100000001b3ull;
    return h;
}

constexpr Stream make_stream(std::uint64_t seed, std::string_view name, std::uint32_t step) {
    std::uint64_t h = hash_of(name);
    Four k = philox(Four{{std::uint32_t(h), std::uint32_t(h >> 32), 0x6d617371u, 0}}, std::uint32_t(seed),
                    std::uint32_t(seed >> 32));
    return Stream{k[0], k[1], step};
}

// Returns a uniform number in (0, 1), never 0 or 1: the middle of one of 2^23 equal intervals. A float represents each
// of these middles exactly.
constexpr float uniform(std::uint32_t bits) { return (float(bits >> 9) + 0.5f) * (1.0f / 8388608.0f); }

// Draws random numbers on the host, one after the other, for example for shuffles and for the choice of hidden tokens.
class Sequence {
  public:
    constexpr Sequence(std::uint64_t seed, std::string_view name, std::uint32_t a = 0, std::uint32_t b = 0)
        : stream_(make_stream(seed, name, 0)), a_(a), b_(b) {}
    constexpr std::uint32_t bits() {
        if (next_ % 4 == 0) four_ = stream_.at(a_, b_, next_ / 4);
        return four_[int(next_++ % 4)];
    }
    constexpr float uniform() { return masquerade::uniform(bits()); }
    constexpr double uniform_double() {
        std::uint64_t hi = bits() >> 6, lo = bits() >> 6;
        return (double((hi << 26) | lo) + 0.5) * 0x1p-52;
    }
    double normal();  // standard normal                                                      Box & Muller 1958
    // Returns a whole number from 0 to n - 1; all have exactly the same probability (Lemire 2019). n must not be 0.
    constexpr std::uint32_t below(std::uint32_t n) {
        std::uint64_t m = std::uint64_t(bits()) * n;
        for (std::uint32_t low = -n % n; std::uint32_t(m) < low;) m = std::uint64_t(bits()) * n;
        return std::uint32_t(m >> 32);
    }

  private:
    Stream stream_;
    std::uint32_t a_, b_, next_ = 0;
    Four four_{};
};

// Returns min(n, most) distinct random numbers from 0 to n - 1, in random order: the beginning of a Fisher-Yates
// shuffle. Needs memory only for the result.
std::vector<std::size_t> drawn(std::size_t n, std::size_t most, Sequence random);

}  // namespace masquerade

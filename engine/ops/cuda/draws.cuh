// SPDX-License-Identifier: MIT
// The random numbers of Stream::at() (engine/base/random.h) with fewer instructions: several draws of one stream are
// computed together, so that they share the keys of the rounds, and instructions are chosen that C++ cannot name.
#pragma once
#include "engine/base/random.h"
#include "engine/ops/cuda/each_constant.cuh"

namespace masquerade::DEVICE {

// Returns a ^ b ^ c.
HD std::uint32_t xor_of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDA_ARCH__
    std::uint32_t x;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(x) : "r"(a), "r"(b), "r"(c));  // 0x96: the table of a ^ b ^ c
    return x;
#else
    return a ^ b ^ c;
#endif
}

// Sets `high` and `low` to the two halves of a b.
HD void whole_product(std::uint32_t a, std::uint32_t b, std::uint32_t& high, std::uint32_t& low) {
    const std::uint64_t product = std::uint64_t(a) * b;
#ifdef __CUDA_ARCH__
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(product));
#else
    high = std::uint32_t(product >> 32), low = std::uint32_t(product);
#endif
}

// The keys of the ten rounds of philox(). A kernel that draws much takes them as an argument: its instructions can then
// read them where they lie.
struct RoundKeys {
    std::uint32_t of_round[10][2];
    RoundKeys() = default;
    HD explicit RoundKeys(const Stream& stream) {
        each_constant<10, 1>([&](auto n) {
            of_round[n][0] = stream.key0 + n * 0x9E3779B9u, of_round[n][1] = stream.key1 + n * 0xBB67AE85u;
        });
    }
};

// A Stream with the keys of its rounds.
struct KeyedStream {
    std::uint32_t step = 0;
    RoundKeys keys;
    KeyedStream() = default;
    HD KeyedStream(const Stream& stream) : step(stream.step), keys(stream) {}
    // Returns the counter of Stream::at(document, position, block).
    HD Four counter(std::uint32_t document, std::uint32_t position, std::uint32_t block) const {
        return {{block, position, document, step}};
    }
};

// Replaces each counter c by philox(c, key0, key1), where `keys` are the keys of the rounds.
template <int n>
HD void philox_together(Four (&all)[n], const RoundKeys& keys) {
    each_constant<10, 1>([&](auto round) {
        each_constant<n, 1>([&](auto i) {
            Four& c = all[i];
            std::uint32_t high[2], low[2];
            whole_product(0xD2511F53u, c.v[0], high[0], low[0]);
            whole_product(0xCD9E8D57u, c.v[2], high[1], low[1]);
            c = Four{{xor_of(high[1], c.v[1], keys.of_round[round][0]), low[1],
                      xor_of(high[0], c.v[3], keys.of_round[round][1]), low[0]}};
        });
    });
}

// Returns stream.at(document, position, block).
HD Four draw_at(const KeyedStream& stream, std::uint32_t document, std::uint32_t position, std::uint32_t block) {
    Four all[1] = {stream.counter(document, position, block)};
    philox_together(all, stream.keys);
    return all[0];
}

}  // namespace masquerade::DEVICE

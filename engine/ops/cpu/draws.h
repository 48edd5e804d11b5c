// SPDX-License-Identifier: MIT
// Computes the random words of Stream::at() (base/random.h) with vector instructions. The generator is Philox, which
// turns a counter into four random words. Each 64-bit lane of a vector processes one counter.
#pragma once
#include "engine/base/random.h"
#include "engine/math/lanes.h"

#include <utility>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace masquerade::cpu {

using KeyedStream = Stream;  // a GPU also keeps the keys of the rounds (cuda/draws.cuh)

#if defined(__AVX512F__)
constexpr int counters = 8;
#elif defined(__AVX2__)
constexpr int counters = 4;
#else
constexpr int counters = 2;
#endif
// A vector with a 32-bit word in the low half of every 64-bit lane; the high half may contain anything.
typedef std::uint64_t LowHalves __attribute__((vector_size(8 * counters)));
typedef std::uint32_t Words __attribute__((vector_size(8 * counters)));
constexpr std::uint64_t low_half = 0xffffffffu;

inline LowHalves same_in_all(std::uint32_t word) { return std::uint64_t(word) - LowHalves{}; }

// Returns the 64-bit product of each word with the factor. The function uses intrinsics, because compilers do not
// find the single instruction that computes all these products.
inline LowHalves product(LowHalves words, std::uint32_t factor) {
    LowHalves factors = same_in_all(factor);
#if defined(__AVX512F__)
    return LowHalves(_mm512_maskz_mul_epu32(0xff, __m512i(words), __m512i(factors)));
#elif defined(__AVX2__)
    return LowHalves(_mm256_mul_epu32(__m256i(words), __m256i(factors)));
#elif defined(__x86_64__)
    return LowHalves(_mm_mul_epu32(__m128i(words), __m128i(factors)));
#else
    return (words & low_half) * factors;
#endif
}

// Counter i consists of the four words c[0][i] to c[3][i]. Replaces each counter by its four random words.
inline void philox(LowHalves (&c)[4], std::uint32_t key0, std::uint32_t key1) {
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        LowHalves a = product(c[0], 0xD2511F53u), b = product(c[2], 0xCD9E8D57u);
        c[0] = (b >> 32) ^ c[1] ^ std::uint64_t(key0);
        c[1] = b;
        c[2] = (a >> 32) ^ c[3] ^ std::uint64_t(key1);
        c[3] = a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}
// Replaces each of 2 * `counters` counters by its four random words. c[k] contains word k of every counter; the words
// are stored one directly after another, without unused halves.
inline void philox(Words (&c)[4], std::uint32_t key0, std::uint32_t key1) {
    LowHalves even[4], odd[4];
    for (int k = 0; k < 4; k++) even[k] = LowHalves(c[k]), odd[k] = even[k] >> 32;
    philox(even, key0, key1);
    philox(odd, key0, key1);
    for (int k = 0; k < 4; k++) c[k] = Words((even[k] & low_half) | (odd[k] << 32));
}

namespace detail {
// Returns a vector that interleaves `a` and `b`: a[from], b[from], a[from + 1], b[from + 1], ...
template <int from, int... i>
LowHalves woven(LowHalves a, LowHalves b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (from + i / 2 + i % 2 * counters)...);
}
}  // namespace detail

constexpr int draws_at_once = 4 * counters;

// Sets words[4 * i + k] = stream.at(document, position, block + i)[k] for i < counters and k < 4.
inline void draw(const Stream& stream, int document, int position, int block, std::uint32_t* words) {
    LowHalves c[4] = {
        {}, same_in_all(std::uint32_t(position)), same_in_all(std::uint32_t(document)), same_in_all(stream.step)};
    for (int i = 0; i < counters; i++) c[0][i] = std::uint64_t(i);
    c[0] += std::uint64_t(block);
    philox(c, stream.key0, stream.key1);
    LowHalves first = (c[0] & low_half) | (c[1] << 32), second = (c[2] & low_half) | (c[3] << 32);
    auto lanes = std::make_integer_sequence<int, counters>{};
    LowHalves low = detail::woven<0>(first, second, lanes), high = detail::woven<counters / 2>(first, second, lanes);
    __builtin_memcpy(words, &low, sizeof low);
    __builtin_memcpy(words + draws_at_once / 2, &high, sizeof high);
}

// Draws n random words for a row, one for each column, and calls f(lane, begin, count, words) for consecutive parts of
// up to 256 columns. words[k] belongs to column i = begin + k, and is stream.at(document, position, i / 4)[i % 4].
template <class F>
void each_draw(OneLane lane, const Stream& stream, int document, int position, int n, F f) {
    constexpr int at_once = 256;
    std::uint32_t words[at_once];
    for (int begin = 0; begin < n; begin += at_once) {
        int count = n - begin < at_once ? n - begin : at_once;
        for (int i = 0; i < count; i += draws_at_once) draw(stream, document, position, (begin + i) / 4, words + i);
        f(lane, begin, count, words);
    }
}

}  // namespace masquerade::cpu

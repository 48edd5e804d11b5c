// SPDX-License-Identifier: MIT
// Tests bfloat16: numbers are rounded to the nearest value, ties to even, and NaN stays NaN, for single numbers and for
// many at a time.
#include "engine/tensor/dtype.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

using namespace masquerade;

namespace {

float float_of_bits(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Returns the nearer one of the two neighbours or, in a tie, the even one. Computed in double.
std::uint16_t nearest(float x) {
    std::uint32_t u;
    std::memcpy(&u, &x, sizeof u);
    const std::uint32_t low = u & 0xffff0000u, high = low + 0x10000u;
    const double below = float_of_bits(low);
    double above = float_of_bits(high);
    if (std::isinf(above)) above = std::copysign(std::ldexp(1.0, 128), x);
    const double down = std::fabs(x - below), up = std::fabs(above - x);
    return std::uint16_t((down < up || (down == up && (low >> 16) % 2 == 0) ? low : high) >> 16);
}

}  // namespace

TEST_CASE("bfloat16: nearest, ties to even; infinity and NaN are kept") {
    int different = 0;
    for (std::uint64_t bits = 0; bits < 1ull << 32; bits += bits % 3 == 0 ? 32767 : 257) {
        const float x = float_of_bits(std::uint32_t(bits));
        if (std::isnan(x))
            different += !std::isnan(float(bfloat16(x)));
        else if (std::isinf(x))
            different += float(bfloat16(x)) != x;
        else
            different += bfloat16(x).bits != nearest(x);
    }
    CHECK(different == 0);
    for (std::uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
        CHECK(std::isnan(float(bfloat16(float_of_bits(nan)))));
        CHECK(std::signbit(float(bfloat16(float_of_bits(nan)))) == (nan >> 31 != 0));
    }
    CHECK(std::isinf(float(bfloat16(3.4e38f))));
    static_assert(bfloat16(1.00390625f).bits == 0x3f80 && bfloat16(1.01171875f).bits == 0x3f82, "ties go to even");
}

TEST_CASE("bfloat16: many at a time as one by one; only what is below 2^-126 may become 0") {
    for (int n : {0, 1, 15, 16, 17, 31, 32, 33, 47, 64, 100}) {
        CAPTURE(n);
        int different = 0;
        for (std::uint64_t bits = 0; bits < 1ull << 32; bits += (1u << 22) + 12345u) {
            std::vector<float> from(static_cast<std::size_t>(n));
            std::vector<bfloat16> to(static_cast<std::size_t>(n) + 2, bfloat16(7.f));
            for (int i = 0; i < n; i++)
                from[std::size_t(i)] = float_of_bits(std::uint32_t(bits + 77777u * unsigned(i)));
            round_to_bfloat16(from.data(), to.data() + 1, n);
            different += float(to.front()) != 7 || float(to.back()) != 7;
            for (int i = 0; i < n; i++) {
                const float x = from[std::size_t(i)];
                const bfloat16 one(x), found = to[std::size_t(i) + 1];
                const bool tiny = std::fabs(x) < 0x1p-126f && float(found) == 0;
                if (std::isnan(x))
                    different += !std::isnan(float(found));
                else
                    different += found.bits != one.bits && !tiny;
            }
        }
        CHECK(different == 0);
    }
}

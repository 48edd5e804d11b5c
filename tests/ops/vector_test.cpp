// SPDX-License-Identifier: MIT
// Compares vectors of floats of this machine with the same arithmetic in plain C++, lane by lane.
#include <doctest/doctest.h>

#include "engine/ops/cpu/vector.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace masquerade;
using namespace masquerade::cpu::vectors;

namespace {
bool same_bits(float a, float b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }
}  // namespace

TEST_CASE("vector: exp_or_zero has the bits of exp_of, and 0 below -87") {
    const float special[] = {0.0f, -0.0f, 88.0f, -87.0f, -87.00001f, -104.0f, -INFINITY, NAN, 1e-40f, -1e-40f};
    int wrong = 0, zeros = 0;
    auto check = [&](float x) {
        const float found = exp_or_zero(splat(x))[lanes - 1], expected = x < -87.0f ? 0.0f : exp_of(x);
        wrong += !same_bits(found, expected);
        zeros += found == 0;
    };
    for (float x : special) check(x);
    for (std::uint32_t u = 0; u < 0x42b00000u; u += 997) check(float_of(u)), check(-float_of(u));
    CHECK(wrong == 0);
    CHECK(zeros > 100);
    CHECK(exp_or_zero(splat(NAN))[0] != exp_or_zero(splat(NAN))[0]);
}

TEST_CASE("vector: numbers are widened and narrowed as one by one, wherever they lie") {
    bfloat16 halves[lanes + 3];
    float floats[lanes + 3];
    int wrong = 0;
    auto check = [&](const float(&x)[lanes]) {
        Vector v;
        for (int i = 0; i < lanes; i++) v[i] = x[i];
        narrow(halves + 1, v);
        narrow(floats + 1, v);
        const Vector wide = widen(halves + 1), same = widen(floats + 1);
        for (int i = 0; i < lanes; i++) {
            wrong += halves[i + 1].bits != bfloat16(x[i]).bits;
            wrong += !same_bits(wide[i], float(bfloat16(x[i]))) || !same_bits(same[i], x[i]);
        }
    };
    for (std::uint64_t u = 0; u < 1ull << 32;) {
        float x[lanes];
        for (int i = 0; i < lanes; i++, u += 65521) x[i] = float_of(std::uint32_t(u));
        check(x);
    }
    for (float x : {INFINITY, -INFINITY, std::numeric_limits<float>::max(), 1.00390625f, 1.01171875f, 1e-45f}) {
        float all[lanes];
        for (float& one : all) one = x;
        check(all);
    }
    CHECK(wrong == 0);
}

TEST_CASE("vector: transpose, masks, multiply-add") {
    Vector v[lanes];
    for (int i = 0; i < lanes; i++)
        for (int j = 0; j < lanes; j++) v[i][j] = float(100 * i + j);
    transpose(v);
    for (int i = 0; i < lanes; i++)
        for (int j = 0; j < lanes; j++) CHECK(float(v[i][j]) == float(100 * j + i));
    for (unsigned bits : {0u, 1u, 5u, (1u << lanes) - 1, 1u << (lanes - 1)})
        for (int i = 0; i < lanes; i++) CHECK((lanes_of(bits)[i] != 0) == (bits >> i & 1));
    const float a = 1.0000001f, b = 0.9999999f, c = -1.0f;
    CHECK(multiply_add(splat(a), splat(b), splat(c))[0] == mul_add(a, b, c));
}

// SPDX-License-Identifier: MIT
// Normal numbers from Philox words, the same on every device to 1e-6. A plain loop over normal_pair
// vectorises (under -fno-math-errno, for its square root).
#pragma once
#include "engine/base/random.h"
#include "engine/math/scalar.h"

namespace masquerade {

// sin and cos of 2 pi u, u in [0, 1]. u = n/4 + f, |f| <= 1/8, is exact; n quarter turns swap and negate.
// Relative error below 2^-23 of each.
HD void sine_and_cosine_of_turns(float u, float& sine, float& cosine) {
    float shifted = mul_add(u, 4.0f, 12582912.0f);
    float f = mul_add(shifted - 12582912.0f, -0.25f, u);
    std::uint32_t n = bits_of(shifted) & 3u;
    float square = f * f;
    float s = f * polynomial(square, 6.28318548f, -41.3418655f, 81.6256256f, -76.7749557f);
    float p = polynomial(square, -19.7392082f, 64.9391403f, -85.4231186f, 58.5612183f);
    float c = mul_add(square, p, 1.0f);
    bool odd = (n & 1u) != 0;
    sine = float_of(bits_of(choose(odd, c, s)) ^ (n & 2u) << 30);
    cosine = float_of(bits_of(choose(odd, s, c)) ^ ((n + 1u) & 2u) << 30);
}

// Two independent normal numbers from two independent words, |x| <= 5.77.             Box & Muller 1958
HD void normal_pair(std::uint32_t a, std::uint32_t b, float& x, float& y) {
    float radius = sqrt_of(-2.0f * log_of(uniform(a)));
    float sine, cosine;
    sine_and_cosine_of_turns(uniform(b), sine, cosine);
    x = radius * cosine;
    y = radius * sine;
}

struct FourNormals {
    float v[4];
    HD float operator[](int i) const { return v[i]; }
};
HD FourNormals normal4(Four words) {
    FourNormals z;
    normal_pair(words[0], words[1], z.v[0], z.v[1]);
    normal_pair(words[2], words[3], z.v[2], z.v[3]);
    return z;
}

}  // namespace masquerade

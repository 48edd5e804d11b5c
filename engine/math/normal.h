// SPDX-License-Identifier: MIT
// Standard normal random numbers, computed from the 32-bit words of the Philox generator. The results of CPU and GPU
// agree to 1e-6. A plain loop over normal_pair() vectorises only with -fno-math-errno, because without this option the
// square root may have to set errno.
#pragma once
#include "engine/base/random.h"
#include "engine/math/scalar.h"

namespace masquerade {

// Computes two independent normal numbers x and y from two independent random words a and b. |x| and |y| are at most
// 5.77.                                                                                Box & Muller 1958
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

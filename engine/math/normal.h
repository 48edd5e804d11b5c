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

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Loops whose counter is a constant in each of their turns. Instructions can contain it, and no compiler leaves the
// loop as it is, as it may with `#pragma unroll`.
#pragma once
#include <type_traits>
#include <utility>

#include "engine/math/lanes.h"
#include "engine/ops/cuda/kernel.cuh"

namespace masquerade::DEVICE {

// Calls f(n) for n = 0, step, 2 step and so on below `end`, with n as a constant (std::integral_constant).
template <int end, int step, class F>
HD void each_constant(F f) {
    [&]<int... n>(std::integer_sequence<int, n...>) { (f(std::integral_constant<int, n * step>{}), ...); }
    (std::make_integer_sequence<int, (end + step - 1) / step>{});
}

}  // namespace masquerade::DEVICE

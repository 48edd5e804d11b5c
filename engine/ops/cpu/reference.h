// SPDX-License-Identifier: MIT
// Which form of a matrix op a type runs: f32 and bf16 run the fast form, f64 and c128 the definition in engine/math.
#pragma once
#include "engine/tensor/dtype.h"

namespace masquerade {

constexpr bool runs_fast(DType type) { return type == DType::f32 || type == DType::bf16; }

// Calls f(A()), where A is the C++ type of f64 or c128. Tensors of these types are also computed in them.
template <class F>
void for_reference_type(DType type, F f) {
    if (type == DType::f64) return f(double());
    f(complex());
}

}  // namespace masquerade

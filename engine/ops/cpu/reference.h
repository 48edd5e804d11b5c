// SPDX-License-Identifier: MIT
// The ops with matrix products have two forms. Tensors of type f32 and bf16 use the fast form. Tensors of type f64 and
// c128 use the definition in engine/math.
#pragma once
#include "engine/tensor/dtype.h"

namespace masquerade {

constexpr bool runs_fast(DType type) { return type == DType::f32 || type == DType::bf16; }

// Calls f(A()), where A is double for f64, else complex. Ops store and compute tensors of these types in the same
// type A.
template <class F>
void for_reference_type(DType type, F f) {
    if (type == DType::f64) return f(double());
    f(complex());
}

}  // namespace masquerade

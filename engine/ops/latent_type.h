// SPDX-License-Identifier: MIT
// Chooses the number type in which an op of latents computes.
#pragma once
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

// Calls f(A{}), where A is the type of `v`. Throws Error if `v` is bf16, because latents are stored in an arithmetic
// type.
template <class F>
void for_latent(const char* op, const View& v, F f) {
    if (v.dtype != arithmetic_of(v.dtype))
        throw Error(text(op, ": ", seen("x", v), "; latents are kept in f32, not in a storage type"));
    for_type(v.dtype, [&]<class S, class A>(Types<S, A>) { f(A{}); });
}

}  // namespace masquerade::DEVICE

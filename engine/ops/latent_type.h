// SPDX-License-Identifier: MIT
// The type that ops of latents compute in.
#pragma once
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

// Latents live in the arithmetic type: f(A{}) for the type of `v`, which may not be bf16.
template <class F>
void for_latent(const char* op, const View& v, F f) {
    if (v.dtype != arithmetic_of(v.dtype))
        throw Error(text(op, ": ", seen("x", v), "; latents are kept in f32, not in a storage type"));
    for_type(v.dtype, [&]<class S, class A>(Types<S, A>) { f(A{}); });
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Formulas of one number.
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

// gelu(x) = x Phi(x) = x/2 (1 + erf(x / sqrt 2)).   Hendrycks & Gimpel 2016
template <class A>
HD A gelu(A x) {
    return A(0.5) * x * (A(1) + erf_of(x * A(0.7071067811865476)));
}
// d gelu / dx = Phi(x) + x phi(x)
template <class A>
HD A gelu_grad(A x) {
    A phi = A(0.3989422804014327) * exp_of(A(-0.5) * x * x);
    return A(0.5) * (A(1) + erf_of(x * A(0.7071067811865476))) + x * phi;
}

// The tanh approximation: x/2 (1 + tanh u), u = sqrt(2/pi) (s + 0.044715 s^3), s = x clamped to [-10, 10], where tanh u
// is 1 to the last bit: without the clamp the derivative meets 0 times infinity.
template <class A>
HD A gelu_tanh_inner(A x, A& s) {
    s = clamp_of(x, -10, 10);
    return tanh_of(A(0.7978845608028654) * (s + A(0.044715) * s * s * s));
}
template <class A>
HD A gelu_tanh(A x) {
    A s;
    return A(0.5) * x * (A(1) + gelu_tanh_inner(x, s));
}
template <class A>
HD A gelu_tanh_grad(A x) {
    A s, t = gelu_tanh_inner(x, s);
    return A(0.5) * (A(1) + t) +
           A(0.5) * x * (A(1) - t * t) * A(0.7978845608028654) * (A(1) + A(3 * 0.044715) * s * s);
}

}  // namespace masquerade

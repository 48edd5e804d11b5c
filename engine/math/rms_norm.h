// SPDX-License-Identifier: MIT
// The formulas of RMSNorm: a layer norm that does not subtract the mean and has no bias.   Zhang & Sennrich 2019
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

// y = x * inverse * w,  inverse = 1 / sqrt(mean(x^2) + eps)
template <class S, class A, class Lanes>
HD void rms_norm_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const A> w, Row<Lanes, S> y, A* inverse, int C,
                     double eps) {
    A square = sum(lanes, C, [&](auto i) { return A(x[i]) * A(x[i]); }) / A(C);
    A r = A(1) / sqrt_of(square + A(eps));
    store(lanes, C, y, false, [&](auto i) { return A(x[i]) * r * w[i]; });
    if (first(lanes)) *inverse = r;
}
// dx = inverse * (g - n * mean(g * n)),  g = dy * w,  n = x * inverse
template <class S, class A, class Lanes>
HD void rms_norm_row_grad(Lanes lanes, Row<Lanes, const S> dy, Row<Lanes, const S> x, Row<Lanes, const A> w, A inverse,
                          Row<Lanes, S> dx, bool add, int C) {
    if (!dx) return;
    A along = sum(lanes, C, [&](auto i) { return A(dy[i]) * w[i] * (A(x[i]) * inverse); }) / A(C);
    store(lanes, C, dx, add, [&](auto i) { return inverse * (A(dy[i]) * w[i] - A(x[i]) * inverse * along); });
}

}  // namespace masquerade

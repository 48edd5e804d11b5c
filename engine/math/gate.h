// SPDX-License-Identifier: MIT
// Activations of feed-forward layers, and the product of a gate and a value. gelu and tanh are in engine/math/point.h.
#pragma once
#include "engine/math/point.h"

namespace masquerade {

// silu(x) = x / (1 + exp(-x))                                                           Elfwing et al. 2017
struct Silu {
    template <class A>
    HD static A value(A x) {
        return x / (A(1) + exp_of(-x));
    }
    // d silu / dx = l (1 + x (1 - l)),  l = 1 / (1 + exp(-x))
    template <class A>
    HD static A slope(A x) {
        const A l = A(1) / (A(1) + exp_of(-x));
        return l * (A(1) + x * (A(1) - l));
    }
};

// max(x, 0)^2                                                                           So et al. 2021
struct SquaredRelu {
    template <class A>
    HD static A value(A x) {
        return real_of(x) < 0 ? A(0) : x * x;
    }
    template <class A>
    HD static A slope(A x) {
        return real_of(x) < 0 ? A(0) : A(2) * x;
    }
};

// y (F) = g(a) b. A row x (2F) holds the gate a, then the value b; g is the activation G.   Shazeer 2020
template <class S, class A, class G, class Lanes>
HD void glu_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, S> y, int F) {
    const auto b = x + F;
    store(lanes, F, y, false, [&](auto i) { return G::value(A(x[i])) * A(b[i]); });
}
// da = dy b g'(a),  db = dy g(a)
template <class S, class A, class G, class Lanes>
HD void glu_row_grad(Lanes lanes, Row<Lanes, const S> dy, Row<Lanes, const S> x, Row<Lanes, S> dx, bool add, int F) {
    const auto b = x + F;
    store(lanes, F, dx, add, [&](auto i) { return A(dy[i]) * A(b[i]) * G::slope(A(x[i])); });
    store(lanes, F, dx + F, add, [&](auto i) { return A(dy[i]) * G::value(A(x[i])); });
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Formulas that apply to one number at a time.
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

// An activation G is a type with two functions of one number: G::value(x), and its derivative G::slope(x). Returns the
// gradient dx = dy slope(x).
template <class G, class A>
HD A along(A dy, A x) {
    return dy * G::slope(x);
}

// gelu(x) = x Phi(x), where Phi is the standard normal distribution function.   Hendrycks & Gimpel 2016
struct Gelu {
    template <class A>
    HD static A value(A x) {
        return x * normal_cdf(x);
    }
    // d gelu / dx = Phi(x) + x phi(x), where phi is the standard normal density.
    template <class A>
    HD static A slope(A x) {
        return normal_cdf(x) + x * normal_pdf(x);
    }
};

// The tanh approximation of gelu, x/2 (1 + tanh u) = x / (1 + exp(-2u)) with u = sqrt(2/pi) (s + 0.044715 s^3).
struct GeluTanh {
    // Returns exp(-2u) = 2^(-2 log2(e) u), and sets s. s is x clamped to [-9.9, 9.9], because tanh u already rounds to
    // 1 or -1 at these bounds. Without the clamp, the derivative at a very negative x would be computed as 0 times
    // infinity.
    template <class A>
    HD static A inner(A x, A& s) {
        s = clamp_of(x, real_of(A(-9.9)), real_of(A(9.9)));
        return exp2_inside(A(-2.302208198145325) * (s + A(0.044715) * s * s * s));
    }
    template <class A>
    HD static A value(A x) {
        A s;
        return x / (A(1) + inner(x, s));
    }
    template <class A>
    HD static A slope(A x) {
        A s, e = inner(x, s), l = A(1) / (A(1) + e);
        return l + s * (e * l) * l * A(2 * 0.7978845608028654) * (A(1) + A(3 * 0.044715) * s * s);
    }
};

template <class A>
HD A times(A a, A b) {
    return a * b;
}

struct Tanh {
    template <class A>
    HD static A value(A x) {
        return tanh_of(x);
    }
    // d tanh / dx = 1 - y^2 with y = tanh(x), which this function takes instead of x. If |y| is near 1, 1 - y^2 would
    // lose most digits, but the product (1 - y) (1 + y) loses none.
    template <class A>
    HD static A slope(A y) {
        return (A(1) - y) * (A(1) + y);
    }
};

// Returns x * scale if the random bits are at least the threshold, else 0. For the dropout rate p, scale is
// 1 / (1 - p) and the threshold is 2^32 p.                                            Srivastava et al. 2014
template <class A>
HD A dropout(A x, std::uint32_t bits, std::uint32_t threshold, A scale) {
    return bits >= threshold ? x * scale : A(0);
}

// The constants of one AdamW step, shared by all parameters. `scale` multiplies the gradients, `rate` is the learning
// rate, `decay` the weight decay. c1 = 1 / (1 - beta1^t) and c2 = 1 / (1 - beta2^t) correct the bias of m and v in step
// t, counted from 1.
template <class A>
struct AdamWFactors {
    A scale, beta1, beta2, rate, c1, c2, eps, decay;
};
// m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,  p -= rate (m c1 / (sqrt(v c2) + eps) + decay p);
// in these formulas, g is the gradient times `scale`.                                 Loshchilov & Hutter 2017
template <class A>
HD void adamw_point(const AdamWFactors<A>& f, A g, A& p, A& m, A& v) {
    g = g * f.scale;
    m = f.beta1 * m + (A(1) - f.beta1) * g;
    v = f.beta2 * v + (A(1) - f.beta2) * g * g;
    p -= f.rate * (m * f.c1 / (sqrt_of(v * f.c2) + f.eps) + f.decay * p);
}

// Returns the factor `change` of apollo_point() for one parameter tensor: -s / den^4 with
// den = fourth^(1/4) + eps / 0.01. `fourth` is sum d^4, and s is sum (alpha (g - m) + B d) d; both sums run over all
// numbers of the tensor. alpha, g, m, B and d are explained at apollo_point(); m, B and d have their values before the
// step.
template <class A>
HD A apollo_change(A fourth, A s, A eps) {
    const A den = sqrt_of(sqrt_of(fourth)) + eps / A(0.01), square = den * den;
    return A(0) - s / square / square;
}
// One Apollo step of one number p of a parameter tensor:                                   Ma 2020, algorithm 1
//     B += change d^2,  m += alpha moved,  d = m / max(|B|, 0.01),  p -= rate d
// g is the gradient plus the weight decay. m is the moving average of g, alpha is the weight of the newest g in m, and
// `moved` is g - m before the step. B (here b) is the diagonal of the approximate Hessian. d is the direction of the
// step, and `rate` the learning rate. `change` is the result of apollo_change() for the tensor.
template <class A>
HD void apollo_point(A rate, A alpha, A change, A moved, A& p, A& m, A& b, A& d) {
    b += change * d * d;
    m += alpha * moved;
    d = m / clamp_of(real_of(b) < 0 ? A(0) - b : b, real_of(A(0.01)), real_of(A(INFINITY)));
    p -= rate * d;
}

}  // namespace masquerade

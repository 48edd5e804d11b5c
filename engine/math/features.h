// SPDX-License-Identifier: MIT
// Feature maps phi of linear attention: phi(q) . phi(k) defines or approximates a kernel of q and k. One row is one
// head of one token: the head's vector x (D) and R numbers t_r, usually the projections t_r = w_r . x~ on random
// vectors w_r, with x~ = scale x. The formulas also use half = |x~|^2 / 2.
//     positive       log phi_r = t_r - half - log(R)/2                                  Choromanski et al. 2020
//     hyperbolic     log phi = (t_r - half, -t_r - half) - log(2R)/2
//     trigonometric  phi = exp(half) R^(-1/2) (cos t_r, sin t_r)
//     relu           phi_r = max(t_r, 0) + 1e-3
//     rfa            phi = R^(-1/2) (sin t_r, cos t_r)                                  Peng et al. 2021
//     softplus       phi_r = log2(1 + 2^t_r), so phi(0) = 1                             Ma et al. 2021
//     elu            phi_r = elu(t_r) + 1                                               Katharopoulos et al. 2020
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

enum class FeatureKind : int { positive, hyperbolic, trigonometric, relu, rfa, softplus, elu };
constexpr int feature_kinds = int(FeatureKind::elu) + 1;  // number of kinds

// True if feature() returns the logarithm of the feature, log phi, instead of phi.
constexpr bool is_logarithm(FeatureKind k) { return k == FeatureKind::positive || k == FeatureKind::hyperbolic; }
// True if the features depend on the norm |x~| of the scaled head x~ = scale x, through half = |x~|^2 / 2.
constexpr bool has_norm(FeatureKind k) { return is_logarithm(k) || k == FeatureKind::trigonometric; }
// True if R projections give 2R features instead of R.
constexpr bool is_double(FeatureKind k) {
    return k == FeatureKind::hyperbolic || k == FeatureKind::trigonometric || k == FeatureKind::rfa;
}
constexpr int features_of(FeatureKind k, int R) { return is_double(k) ? 2 * R : R; }
// Returns the argument `factor` of feature(), for R projections. If feature() returns logarithms, this is half the
// logarithm of the number of features; otherwise it is R^(-1/2).
inline double feature_factor(FeatureKind k, int R) {
    return is_logarithm(k) ? 0.5 * std::log(double(features_of(k, R))) : 1 / std::sqrt(double(R));
}

template <class A>
HD A positive_part(A t) {
    return clamp_of(t, real_of(A(0)), real_of(A(INFINITY)));
}
// Returns log2(1 + 2^t) and its derivative. With e = 2^-|t|, the value is max(t, 0) + log2(1 + e). For a small e, 1 + e
// loses digits of e when it is rounded to u. Therefore log(1 + e) is computed as log(u) e / (u - 1), which corrects
// this rounding error.
template <class A>
HD Two<A> softplus2(A t) {
    A low = real_of(t) > 0 ? -t : t, e = exp2_inside(clamp_of(low, real_of(A(-126)), real_of(A(0))));
    A u = A(1) + e, d = u - A(1), log_u = real_of(d) == 0 ? e : log_of(u) * (e / d);
    return {positive_part(t) + A(1.4426950408889634) * log_u, (real_of(t) > 0 ? A(1) : e) / u};
}

// Returns one feature of a projection t (its logarithm if is_logarithm(kind)), and the derivative of this result with
// respect to t. `half` is |x~|^2 / 2 for the scaled head x~, and `factor` comes from feature_factor(). If R projections
// give 2R features, `second` selects the second R of them.
template <FeatureKind kind, class A>
HD Two<A> feature(A t, bool second, A half, A factor) {
    using K = FeatureKind;
    if constexpr (is_logarithm(kind)) {
        A sign(second ? -1 : 1);
        return {sign * t - half - factor, sign};
    } else if constexpr (is_double(kind)) {
        A sine, cosine, size = kind == K::rfa ? factor : factor * exp_of(half);
        sine_and_cosine(t, sine, cosine);
        // rfa: R sines, then R cosines. trigonometric: R cosines, then R sines.
        return second == (kind == K::rfa) ? Two<A>{size * cosine, -size * sine} : Two<A>{size * sine, size * cosine};
    } else if constexpr (kind == K::relu) {
        return {positive_part(t) + A(1e-3), A(real_of(t) > 0 ? 1 : 0)};
    } else if constexpr (kind == K::elu) {
        A e = exp_of(clamp_of(t, real_of(A(-INFINITY)), real_of(A(0))));
        return {e + positive_part(t), e};
    } else {
        return softplus2(t);
    }
}

// The inputs of all N H rows, one row for each of H heads of N tokens: the projections t (N H, R) and the heads
// x (N H, D). If the features do not depend on x, x may be null; D is then 0.
template <FeatureKind kind, class S, class A>
struct FeatureRows {
    static constexpr int parts = is_double(kind) ? 2 : 1;
    const A* t;
    const S* x;
    int R, D;
    A scale, factor;

    template <class Lanes>
    HD A half(Lanes lanes, std::int64_t n) const {
        if constexpr (!has_norm(kind))
            return A(0);
        else
            return A(0.5) * scale * scale * sum(lanes, D, [&](int i) { return A(x[n * D + i]) * A(x[n * D + i]); });
    }
};
template <FeatureKind kind, class S, class A>
struct FeatureForward {
    FeatureRows<kind, S, A> of;
    A* y;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const A half = of.half(lanes, n), *t = of.t + n * of.R;
        for (int part = 0; part < of.parts; part++)
            store(lanes, of.R, y + (n * of.parts + part) * of.R, false,
                  [&](int r) { return feature<kind>(t[r], part == 1, half, of.factor).first; });
    }
};
// Computes dt and dx of one row from dy, the gradient of its features y. t are the R projections of the row, x is its
// head, and phi'_r is the derivative of feature r with respect to its projection.
//     dt_r = dy_r phi'_r or, if there are 2R features, dt_r = dy_r phi'_r + dy_(R+r) phi'_(R+r)
//     dx = dhalf scale^2 x, with dhalf = -sum dy for log features, sum dy y for `trigonometric`, and 0 for other kinds
// A gradient whose pointer is null is not computed.
template <FeatureKind kind, class S, class A>
struct FeatureBackward {
    FeatureRows<kind, S, A> of;
    const A* dy;
    A* dt;
    bool add_t;
    S* dx;
    bool add_x;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int R = of.R, D = of.D;
        const A half = of.half(lanes, n), *t = of.t + n * R, *g = dy + n * of.parts * R;
        auto feature_at = [&](int r, int part) { return feature<kind>(t[r], part == 1, half, of.factor); };
        if (dt)
            store(lanes, R, dt + n * R, add_t, [&](int r) {
                A d = g[r] * feature_at(r, 0).second;
                return is_double(kind) ? d + g[R + r] * feature_at(r, 1).second : d;
            });
        if (!dx) return;
        A dhalf(0);
        for (int part = 0; has_norm(kind) && part < of.parts; part++)
            dhalf += sum(lanes, R, [&](int r) {
                return is_logarithm(kind) ? -g[part * R + r] : g[part * R + r] * feature_at(r, part).first;
            });
        if (has_norm(kind) || !add_x)
            store(lanes, D, dx + n * D, add_x,
                  [&](int i) { return has_norm(kind) ? dhalf * of.scale * of.scale * A(of.x[n * D + i]) : A(0); });
    }
};

}  // namespace masquerade

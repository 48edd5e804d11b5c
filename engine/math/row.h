// SPDX-License-Identifier: MIT
// Formulas for one row, written once for CPU loops, CUDA warps and complex numbers (with which tests compute
// derivatives). Each forward is followed by its backward. `dx` is the gradient of `x`. If `add` is true, gradients are
// added to the old values; otherwise they replace the old values.
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

// y = (x - mean) * rstd * w + b,  rstd = 1 / sqrt(variance + eps)
template <class S, class A, class Lanes>
HD void layernorm_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const A> w, Row<Lanes, const A> b, Row<Lanes, S> y,
                      A* mean, A* rstd, int C, double eps) {
    A m = sum(lanes, C, [&](auto i) { return A(x[i]); }) / A(C);
    A v = sum(lanes, C, [&](auto i) { return (A(x[i]) - m) * (A(x[i]) - m); }) / A(C);
    A r = A(1) / sqrt_of(v + A(eps));
    store(lanes, C, y, false, [&](auto i) { return (A(x[i]) - m) * r * w[i] + b[i]; });
    if (first(lanes)) {
        *mean = m;
        *rstd = r;
    }
}
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)),  g = dy * w,  xhat = (x - mean) * rstd
template <class S, class A, class Lanes>
struct LayerNormGrad {
    Row<Lanes, const S> dy, x;
    Row<Lanes, const A> w;
    A m, r, mean_g, mean_gx;
    template <class Index>
    HD A operator()(Index i) const {
        return r * (A(dy[i]) * w[i] - mean_g - (A(x[i]) - m) * r * mean_gx);
    }
};
// Returns the gradient dx of one row, as an object that is called with the index of a column.
template <class S, class A, class Lanes>
HD LayerNormGrad<S, A, Lanes> layernorm_row_grad(Lanes lanes, Row<Lanes, const S> dy, Row<Lanes, const S> x,
                                                 Row<Lanes, const A> w, A m, A r, int C) {
    Two<A> total = sums(
        lanes, C, [&](auto i) { return A(dy[i]) * w[i]; },
        [&](auto i) { return A(dy[i]) * w[i] * ((A(x[i]) - m) * r); });
    A mean_g = total.first / A(C), mean_gx = total.second / A(C);
    return {dy, x, w, m, r, mean_g, mean_gx};
}

// Returns log sum_i exp f(i) for i < n; minus infinity if n is 0.
template <class Lanes, class F>
HD auto log_sum_exp(Lanes lanes, int n, F f) {
    using A = decltype(f(0));
    const A from(n > 0 ? top(lanes, n, f) : 0);
    return from + log_of(sum(lanes, n, [&](int i) { return exp_of(f(i) - from); }));
}

// For each pair of neighbouring numbers of each head (D), calls f(i, j, k, l), which returns two results. i and
// j = i + 1 are the indices of the pair in the row; k and l = k + 1, with an even k, are its indices in the head.
// Stores the two results in to[i] and to[j] or, if `add` is true, adds them.
template <class Lanes, class S, class F>
HD void store_pairs(Lanes lanes, int heads, int D, S* to, bool add, F f) {
    for (int begin = 0; begin < heads * D; begin += D)
        each(lanes, D / 2, [&](int pair) {
            const int k = 2 * pair, i = begin + k;
            const auto two = f(i, i + 1, k, k + 1);
            put(to[i], two.first, add);
            put(to[i + 1], two.second, add);
        });
}
#ifndef HAS_WARPS
// store_pairs() for bf16. It computes a tile of numbers in float, and then rounds the tile with vector instructions, as
// store() does for bf16.
template <class F>
void store_pairs(OneLane lane, int heads, int D, bfloat16* to, bool add, F f) {
    constexpr int tile = 64;
    float numbers[tile];
    for (int head = 0; head < heads * D; head += D)
        for (int begin = 0; begin < D; begin += tile) {
            const int count = D - begin < tile ? D - begin : tile;
            for (int n = 0; n < count; n += 2) {
                const int k = begin + n, i = head + k;
                const auto two = f(i, i + 1, k, k + 1);
                numbers[n] = two.first, numbers[n + 1] = two.second;
            }
            store(lane, count, to + head + begin, add, [&](int n) { return numbers[n]; });
        }
}
#endif
// Rotates the pairs (2i, 2i+1) of every head by the angles of the token's position. All heads use the same cosines and
// sines: for pair i of a head, turn[2i] is the cosine of the angle, and turn[2i+1] the sine. The forward has direction
// 1; the backward is the inverse rotation, with direction -1. x and y may be the same array.
//     y[2i] = x[2i] cos - x[2i+1] sin,   y[2i+1] = x[2i+1] cos + x[2i] sin
template <class S, class A, class Lanes>
HD void rotary_pairs(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const A> turn, A direction, Row<Lanes, S> y,
                     bool add, int heads, int D) {
    store_pairs(lanes, heads, D, y, add, [&](auto i, auto j, auto k, auto l) {
        A c = turn[k], s = direction * turn[l];
        A a = A(x[i]), b = A(x[j]);
        return Two<A>{mul_add(a, c, -(b * s)), mul_add(b, c, a * s)};
    });
}
// Rotates every head (D) in the first `columns` columns, and copies the other columns.
template <class S, class A, class Lanes>
HD void rotary_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const A> turn, A direction, Row<Lanes, S> y, bool add,
                   int columns, int D, int C) {
    rotary_pairs<S, A>(lanes, x, turn, direction, y, add, columns / D, D);
    const auto rest = x + columns;
    store(lanes, C - columns, y + columns, add, [&](auto i) { return A(rest[i]); });
}

// y = x * inverse,  inverse = 1 / max(|x|, 1e-6)
template <class S, class A, class Lanes>
HD void normalise_row(Lanes lanes, const S* x, S* y, A* inverse, int Z) {
    A square = sum(lanes, Z, [&](int i) { return A(x[i]) * A(x[i]); });
    A r = real_of(square) > 1e-12 ? A(1) / sqrt_of(square) : A(1e6);
    each(lanes, Z, [&](int i) { y[i] = S(A(x[i]) * r); });
    if (first(lanes)) *inverse = r;
}
// dx = inverse * (dy - (dy.y) y), with y = x * inverse and inverse = 1 / max(|x|, 1e-6). If |x| was at most 1e-6,
// `inverse` is constant, and the term (dy.y) y is omitted.
template <class S, class A, class Lanes>
HD void normalise_row_grad(Lanes lanes, const S* dy, const S* y, A inverse, S* dx, bool add, int Z) {
    A along = sum(lanes, Z, [&](int i) { return A(dy[i]) * A(y[i]); });
    if (real_of(inverse) >= 1e6) along = A(0);
    each(lanes, Z, [&](int i) { put(dx[i], inverse * (A(dy[i]) - along * A(y[i])), add); });
}

// Computes a sample z of the von Mises-Fisher distribution with mean direction mu. e is standard normal noise. The
// caller has drawn w, the scalar product mu.z.
//     z = w mu + c nu,   c = sqrt(1 - w^2), at least 1e-5,   nu = u / |u|,   u = e - (e.mu) mu     Davidson et al. 2018
template <class A, class Lanes>
HD void vmf_sample_row(Lanes lanes, const A* mu, A w, const A* e, A* z, int Z) {
    A s = sum(lanes, Z, [&](int i) { return e[i] * mu[i]; });
    A uu = sum(lanes, Z, [&](int i) { return (e[i] - s * mu[i]) * (e[i] - s * mu[i]); });
    A room = A(1) - w * w;
    A c = real_of(room) > 1e-10 ? sqrt_of(room) : A(1e-5);
    A scale = c / sqrt_of(uu);
    each(lanes, Z, [&](int i) { z[i] = w * mu[i] + scale * (e[i] - s * mu[i]); });
}
// Computes dmu and dw of vmf_sample_row() from g = dz:
//     h = (c / |u|) (g - (g.nu) nu),   dmu = w g - s h - (h.mu) e,   dw = g.mu - (w / c) (g.nu)
// As in vmf_sample_row(), s = e.mu, u = e - s mu, nu = u / |u|, and c = sqrt(1 - w^2), at least 1e-5. If c was set to
// this lower bound, dw = g.mu. dmu and dw may be null.
template <class A, class Lanes>
HD void vmf_sample_row_grad(Lanes lanes, const A* dz, const A* mu, A w, const A* e, A* dmu, bool add, A* dw, bool add_w,
                            int Z) {
    A s = sum(lanes, Z, [&](int i) { return e[i] * mu[i]; });
    A uu = sum(lanes, Z, [&](int i) { return (e[i] - s * mu[i]) * (e[i] - s * mu[i]); });
    A room = A(1) - w * w;
    A c = real_of(room) > 1e-10 ? sqrt_of(room) : A(1e-5);
    A r = A(1) / sqrt_of(uu);
    A g_nu = sum(lanes, Z, [&](int i) { return dz[i] * (e[i] - s * mu[i]) * r; });
    A h_mu = sum(lanes, Z, [&](int i) { return c * r * (dz[i] - g_nu * (e[i] - s * mu[i]) * r) * mu[i]; });
    if (dw) {
        const A g_mu = sum(lanes, Z, [&](int i) { return dz[i] * mu[i]; });
        if (first(lanes)) put(*dw, real_of(room) > 1e-10 ? g_mu - w / c * g_nu : g_mu, add_w);
    }
    if (!dmu) return;
    each(lanes, Z, [&](int i) {
        A h = c * r * (dz[i] - g_nu * (e[i] - s * mu[i]) * r);
        put(dmu[i], w * dz[i] - s * h - h_mu * e[i], add);
    });
}

// A row x (2Z) of a Gaussian latent holds Z means mu, then Z log variances l. Each l is clamped to [-8, 8].
// inside_clamp() is the derivative of the clamp: 1 inside this interval and 0 outside.
template <class A>
HD A clamped_log_variance(A l) {
    return clamp_of(l, -8, 8);
}
template <class A>
HD A inside_clamp(A l) {
    return real_of(l) > 8 || real_of(l) < -8 ? A(0) : A(1);
}

// z = mu + exp(l/2) e, where e is standard normal noise and l is clamped                Kingma & Welling 2013
template <class A, class Lanes>
HD void gaussian_sample_row(Lanes lanes, const A* x, const A* e, A* z, int Z) {
    each(lanes, Z, [&](int i) { z[i] = x[i] + exp_of(A(0.5) * clamped_log_variance(x[Z + i])) * e[i]; });
}
// dmu = dz,   dl = dz e exp(l/2) / 2, or dl = 0 where l was clamped
template <class A, class Lanes>
HD void gaussian_sample_row_grad(Lanes lanes, const A* dz, const A* x, const A* e, A* dx, bool add, int Z) {
    each(lanes, Z, [&](int i) {
        A deviation = exp_of(A(0.5) * clamped_log_variance(x[Z + i]));
        put(dx[i], dz[i], add);
        put(dx[Z + i], inside_clamp(x[Z + i]) * dz[i] * e[i] * deviation * A(0.5), add);
    });
}

// Three quantities of term i of the sum in the KL divergence of two Gaussians:
//     KL(N(mu, exp l) || N(m, exp p)) = 1/2 sum_i((mu - m)^2 exp(-p) + exp(l - p) - (l - p) - 1)
// A row x (2Z) holds mu, then l; a row `prior` (2Z) holds m, then p. A null prior is the standard normal distribution,
// m = p = 0.
template <class A>
struct GaussianTerm {
    A apart, narrow, ratio;  // mu - m, exp(-p), l - p, for the means mu, m and the clamped log variances l, p
    HD GaussianTerm(const A* x, const A* prior, int i, int Z) {
        const A p = prior ? clamped_log_variance(prior[Z + i]) : A(0);
        apart = prior ? x[i] - prior[i] : x[i];
        narrow = prior ? exp_of(-p) : A(1);
        ratio = clamped_log_variance(x[Z + i]) - p;
    }
};
// Computes the KL divergence of two Gaussians, as at GaussianTerm. If kls is 1, kl receives the sum; if kls is Z, kl
// receives the Z terms of the sum, each with the factor 1/2.
template <class A, class Lanes>
HD void gaussian_kl_row(Lanes lanes, const A* x, const A* prior, A* kl, int kls, int Z) {
    const auto of = [&](int i) {
        const GaussianTerm<A> t(x, prior, i, Z);
        return A(0.5) * (t.apart * t.apart * t.narrow + exp_of(t.ratio) - t.ratio - A(1));
    };
    if (kls == Z) return each(lanes, Z, [&](int i) { kl[i] = of(i); });
    const A k = sum(lanes, Z, of);
    if (first(lanes)) *kl = k;
}
// dmu = dkl (mu - m) exp(-p),   dl = dkl (exp(l - p) - 1) / 2
// dm = -dmu,   dp = dkl (1 - (mu - m)^2 exp(-p) - exp(l - p)) / 2
// dx holds dmu, then dl; dprior holds dm, then dp. dl is 0 where l was clamped, and dp is 0 where p was clamped. dx and
// dprior may be null.
template <class A, class Lanes>
HD void gaussian_kl_row_grad(Lanes lanes, const A* dkls, int kls, const A* x, const A* prior, A* dx, bool add,
                             A* dprior, bool add_prior, int Z) {
    each(lanes, Z, [&](int i) {
        const GaussianTerm<A> t(x, prior, i, Z);
        const A dkl = dkls[kls == Z ? i : 0], dmu = dkl * t.apart * t.narrow, variance = exp_of(t.ratio);
        if (dx) {
            put(dx[i], dmu, add);
            put(dx[Z + i], inside_clamp(x[Z + i]) * dkl * A(0.5) * (variance - A(1)), add);
        }
        if (!dprior) return;
        put(dprior[i], -dmu, add_prior);
        put(dprior[Z + i], inside_clamp(prior[Z + i]) * dkl * A(0.5) * (A(1) - t.apart * t.apart * t.narrow - variance),
            add_prior);
    });
}

}  // namespace masquerade

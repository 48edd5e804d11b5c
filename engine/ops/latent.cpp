// SPDX-License-Identifier: MIT
// Ops of continuous latents: normalise, vmf_sample (von Mises-Fisher distribution), gaussian_sample, gaussian_kl and
// at_least. Only normalise accepts rounded storage types; all other tensors have the arithmetic type. The noise of the
// samples has no gradient.
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/latent_type.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// at_least: max(x, least), and its gradient.
template <class A>
HD A at_least_point(A x, A least) {
    return real_of(x) > real_of(least) ? x : least;
}
template <class A>
HD A at_least_point_grad(A dy, A x, A least) {
    return real_of(x) > real_of(least) ? dy : A(0);
}

// Returns Z. A row of x (B,2Z) holds Z means, then Z log variances.
std::int64_t half_of(const char* op, const View& x) {
    if (x.columns() % 2) throw Error(text(op, ": ", seen("x", x), "; expected (B,2Z): mu, then log variance"));
    return x.columns() / 2;
}

// Checks the shape of kl, and returns how many numbers it has per row: Z if kl is (B,Z), for one term per latent
// number, or 1 if kl is (B), for the sum of the terms.
int kls_of(const char* op, const char* name, const View& kl, const View& x, std::int64_t Z) {
    const bool apart = kl.shape == Shape{x.rows(), Z};
    expect_shape(op, name, kl, apart ? Shape{x.rows(), Z} : Shape{x.rows()}, x.dtype);
    return apart ? int(Z) : 1;
}

int columns_of_head(const char* op, const View& x, int heads, const View& inverse) {
    expect_shape(op, "inverse", inverse, {x.rows(), heads}, arithmetic_of(x.dtype));
    if (heads < 1 || x.columns() % heads)
        throw Error(text(op, ": ", seen("x", x), ", ", heads, " heads; expected whole ones"));
    return int(x.columns() / heads);
}

}  // namespace

void normalise_forward(View x, int heads, View y, View inverse) {
    const int Z = columns_of_head("normalise", x, heads, inverse);
    expect_same_shape("normalise", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(x.rows() * heads,
                     row_call<normalise_row<S, A, Lanes>>(by_row<S>(x, Z), by_row<S>(y, Z), by_row<A>(inverse, 1), Z));
    });
}

void normalise_backward(View dy, View y, View inverse, int heads, Grad dx) {
    const int Z = columns_of_head("normalise backward", y, heads, inverse);
    expect_same_shape("normalise backward", "dy", dy, "y", y);
    expect_grad("normalise backward", "dx", dx, y);
    if (!dx) return;
    for_type(y.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(y.rows() * heads,
                     row_call<normalise_row_grad<S, A, Lanes>>(by_row<S>(dy, Z), by_row<S>(y, Z), by_row<A>(inverse, 1),
                                                               by_row<S>(dx.view, Z), dx.add, Z));
    });
}

void vmf_sample_forward(View mu, View w, View e, View z) {
    expect_same_shape("vmf_sample", "mu", mu, "e", e);
    expect_same_shape("vmf_sample", "mu", mu, "z", z);
    expect_shape("vmf_sample", "w", w, {mu.rows()}, mu.dtype);
    for_latent("vmf_sample", mu, [&]<class A>(A) {
        for_each_row(mu.rows(), row_call<vmf_sample_row<A, Lanes>>(by_row<A>(mu), by_row<A>(w), by_row<A>(e),
                                                                   by_row<A>(z), int(mu.columns())));
    });
}

void vmf_sample_backward(View dz, View mu, View w, View e, Grad dmu, Grad dw) {
    expect_same_shape("vmf_sample backward", "dz", dz, "mu", mu);
    expect_same_shape("vmf_sample backward", "mu", mu, "e", e);
    expect_shape("vmf_sample backward", "w", w, {mu.rows()}, mu.dtype);
    expect_grad("vmf_sample backward", "dmu", dmu, mu);
    expect_grad("vmf_sample backward", "dw", dw, w);
    if (!dmu && !dw) return;
    for_latent("vmf_sample backward", mu, [&]<class A>(A) {
        for_each_row(mu.rows(), row_call<vmf_sample_row_grad<A, Lanes>>(by_row<A>(dz), by_row<A>(mu), by_row<A>(w),
                                                                        by_row<A>(e), by_row<A>(dmu), dmu.add,
                                                                        by_row<A>(dw), dw.add, int(mu.columns())));
    });
}

void gaussian_sample_forward(View x, View e, View z) {
    std::int64_t Z = half_of("gaussian_sample", x);
    expect_shape("gaussian_sample", "e", e, {x.rows(), Z}, x.dtype);
    expect_same_shape("gaussian_sample", "e", e, "z", z);
    for_latent("gaussian_sample", x, [&]<class A>(A) {
        for_each_row(x.rows(),
                     row_call<gaussian_sample_row<A, Lanes>>(by_row<A>(x), by_row<A>(e), by_row<A>(z), int(Z)));
    });
}

void gaussian_sample_backward(View dz, View x, View e, Grad dx) {
    std::int64_t Z = half_of("gaussian_sample backward", x);
    expect_same_shape("gaussian_sample backward", "dz", dz, "e", e);
    expect_grad("gaussian_sample backward", "dx", dx, x);
    if (!dx) return;
    for_latent("gaussian_sample backward", x, [&]<class A>(A) {
        for_each_row(x.rows(), row_call<gaussian_sample_row_grad<A, Lanes>>(by_row<A>(dz), by_row<A>(x), by_row<A>(e),
                                                                            by_row<A>(dx), dx.add, int(Z)));
    });
}

void gaussian_kl_forward(View x, View prior, View kl) {
    std::int64_t Z = half_of("gaussian_kl", x);
    if (prior) expect_same_shape("gaussian_kl", "x", x, "prior", prior);
    const int kls = kls_of("gaussian_kl", "kl", kl, x, Z);
    for_latent("gaussian_kl", x, [&]<class A>(A) {
        for_each_row(x.rows(), row_call<gaussian_kl_row<A, Lanes>>(by_row<A>(x), by_row<A>(prior), by_row<A>(kl, kls),
                                                                   kls, int(Z)));
    });
}

void gaussian_kl_backward(View dkl, View x, View prior, Grad dx, Grad dprior) {
    std::int64_t Z = half_of("gaussian_kl backward", x);
    const int kls = kls_of("gaussian_kl backward", "dkl", dkl, x, Z);
    if (prior) expect_same_shape("gaussian_kl backward", "x", x, "prior", prior);
    expect_grad("gaussian_kl backward", "dx", dx, x);
    expect_grad("gaussian_kl backward", "dprior", dprior, x);
    if (!dx && !dprior) return;
    for_latent("gaussian_kl backward", x, [&]<class A>(A) {
        for_each_row(x.rows(), row_call<gaussian_kl_row_grad<A, Lanes>>(by_row<A>(dkl, kls), kls, by_row<A>(x),
                                                                        by_row<A>(prior), by_row<A>(dx), dx.add,
                                                                        by_row<A>(dprior), dprior.add, int(Z)));
    });
}

void at_least_forward(View x, double least, View y) {
    expect_same_shape("at_least", "x", x, "y", y);
    for_latent("at_least", x, [&]<class A>(A) {
        store_points(x.count(), y.as<A>(), false, point_call<at_least_point<A>>(by_point<A>(x), A(least)));
    });
}

void at_least_backward(View dy, View x, double least, Grad dx) {
    expect_same_shape("at_least backward", "dy", dy, "x", x);
    expect_grad("at_least backward", "dx", dx, x);
    if (!dx) return;
    for_latent("at_least backward", x, [&]<class A>(A) {
        store_points(x.count(), dx.view.as<A>(), dx.add,
                     point_call<at_least_point_grad<A>>(by_point<A>(dy), by_point<A>(x), A(least)));
    });
}

}  // namespace masquerade::DEVICE

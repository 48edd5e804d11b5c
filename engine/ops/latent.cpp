// SPDX-License-Identifier: MIT
// The row ops of the latent layers: normalise, von Mises-Fisher and Gaussian samples, Gaussian KL. All but normalise in
// the arithmetic type; noise is a constant.
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/latent_type.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Normalise {
    const S* x;
    S* y;
    A* inverse;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        normalise_row(lanes, x + n * Z, y + n * Z, inverse + n, Z);
    }
};
template <class S, class A>
struct NormaliseBackward {
    const S *dy, *y;
    const A* inverse;
    S* dx;
    bool add;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        normalise_row_grad(lanes, dy + n * Z, y + n * Z, inverse[n], dx + n * Z, add, Z);
    }
};

template <class A>
struct VmfSample {
    const A *mu, *w, *e;
    A* z;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        vmf_sample_row(lanes, mu + n * Z, w[n], e + n * Z, z + n * Z, Z);
    }
};
template <class A>
struct VmfSampleBackward {
    const A *dz, *mu, *w, *e;
    A *dmu, *dw;
    bool add, add_w;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        vmf_sample_row_grad(lanes, dz + n * Z, mu + n * Z, w[n], e + n * Z, dmu ? dmu + n * Z : nullptr, add,
                            dw ? dw + n : nullptr, add_w, Z);
    }
};

template <class A>
struct GaussianSample {
    const A *x, *e;
    A* z;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        gaussian_sample_row(lanes, x + n * 2 * Z, e + n * Z, z + n * Z, Z);
    }
};
template <class A>
struct GaussianSampleBackward {
    const A *dz, *x, *e;
    A* dx;
    bool add;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        gaussian_sample_row_grad(lanes, dz + n * Z, x + n * 2 * Z, e + n * Z, dx + n * 2 * Z, add, Z);
    }
};

template <class A>
struct GaussianKl {
    const A *x, *prior;
    A* kl;
    int kls, Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        gaussian_kl_row(lanes, x + n * 2 * Z, prior ? prior + n * 2 * Z : nullptr, kl + n * kls, kls, Z);
    }
};
template <class A>
struct GaussianKlBackward {
    const A *dkl, *x, *prior;
    A *dx, *dprior;
    bool add, add_prior;
    int kls, Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const std::int64_t at = n * 2 * Z;
        gaussian_kl_row_grad(lanes, dkl + n * kls, kls, x + at, prior ? prior + at : nullptr, dx ? dx + at : nullptr,
                             add, dprior ? dprior + at : nullptr, add_prior, Z);
    }
};

// max(x, least), or where dy is given its gradient.
template <class A>
struct AtLeast {
    const A *x, *dy;
    A least;
    HD A operator()(std::int64_t i) const {
        const bool above = real_of(x[i]) > real_of(least);
        return dy ? (above ? dy[i] : A(0)) : (above ? x[i] : least);
    }
};

// x holds mu and the log variance side by side.
std::int64_t half_of(const char* op, const View& x) {
    if (x.columns() % 2) throw Error(text(op, ": ", seen("x", x), "; expected (B,2Z): mu, then log variance"));
    return x.columns() / 2;
}

// How many KLs a row has: one, or one of each number.
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
        for_each_row(x.rows() * heads, Normalise<S, A>{x.as<S>(), y.as<S>(), inverse.as<A>(), Z});
    });
}

void normalise_backward(View dy, View y, View inverse, int heads, Grad dx) {
    const int Z = columns_of_head("normalise backward", y, heads, inverse);
    expect_same_shape("normalise backward", "dy", dy, "y", y);
    expect_grad("normalise backward", "dx", dx, y);
    if (!dx) return;
    for_type(y.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(y.rows() * heads,
                     NormaliseBackward<S, A>{dy.as<S>(), y.as<S>(), inverse.as<A>(), dx.view.as<S>(), dx.add, Z});
    });
}

void vmf_sample_forward(View mu, View w, View e, View z) {
    expect_same_shape("vmf_sample", "mu", mu, "e", e);
    expect_same_shape("vmf_sample", "mu", mu, "z", z);
    expect_shape("vmf_sample", "w", w, {mu.rows()}, mu.dtype);
    for_latent("vmf_sample", mu, [&]<class A>(A) {
        for_each_row(mu.rows(), VmfSample<A>{mu.as<A>(), w.as<A>(), e.as<A>(), z.as<A>(), int(mu.columns())});
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
        for_each_row(mu.rows(), VmfSampleBackward<A>{dz.as<A>(), mu.as<A>(), w.as<A>(), e.as<A>(), dmu.view.as<A>(),
                                                     dw.view.as<A>(), dmu.add, dw.add, int(mu.columns())});
    });
}

void gaussian_sample_forward(View x, View e, View z) {
    std::int64_t Z = half_of("gaussian_sample", x);
    expect_shape("gaussian_sample", "e", e, {x.rows(), Z}, x.dtype);
    expect_same_shape("gaussian_sample", "e", e, "z", z);
    for_latent("gaussian_sample", x, [&]<class A>(A) {
        for_each_row(x.rows(), GaussianSample<A>{x.as<A>(), e.as<A>(), z.as<A>(), int(Z)});
    });
}

void gaussian_sample_backward(View dz, View x, View e, Grad dx) {
    std::int64_t Z = half_of("gaussian_sample backward", x);
    expect_same_shape("gaussian_sample backward", "dz", dz, "e", e);
    expect_grad("gaussian_sample backward", "dx", dx, x);
    if (!dx) return;
    for_latent("gaussian_sample backward", x, [&]<class A>(A) {
        for_each_row(x.rows(),
                     GaussianSampleBackward<A>{dz.as<A>(), x.as<A>(), e.as<A>(), dx.view.as<A>(), dx.add, int(Z)});
    });
}

void gaussian_kl_forward(View x, View prior, View kl) {
    std::int64_t Z = half_of("gaussian_kl", x);
    if (prior) expect_same_shape("gaussian_kl", "x", x, "prior", prior);
    const int kls = kls_of("gaussian_kl", "kl", kl, x, Z);
    for_latent("gaussian_kl", x, [&]<class A>(A) {
        for_each_row(x.rows(), GaussianKl<A>{x.as<A>(), prior.as<A>(), kl.as<A>(), kls, int(Z)});
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
        for_each_row(x.rows(), GaussianKlBackward<A>{dkl.as<A>(), x.as<A>(), prior.as<A>(), dx.view.as<A>(),
                                                     dprior.view.as<A>(), dx.add, dprior.add, kls, int(Z)});
    });
}

void at_least_forward(View x, double least, View y) {
    expect_same_shape("at_least", "x", x, "y", y);
    for_latent("at_least", x, [&]<class A>(A) {
        store_points(x.count(), y.as<A>(), false, AtLeast<A>{x.as<A>(), nullptr, A(least)});
    });
}

void at_least_backward(View dy, View x, double least, Grad dx) {
    expect_same_shape("at_least backward", "dy", dy, "x", x);
    expect_grad("at_least backward", "dx", dx, x);
    if (!dx) return;
    for_latent("at_least backward", x, [&]<class A>(A) {
        store_points(x.count(), dx.view.as<A>(), dx.add, AtLeast<A>{x.as<A>(), dy.as<A>(), A(least)});
    });
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Ops of continuous latents: normalise, vmf_sample (von Mises-Fisher distribution), gaussian_sample, gaussian_kl and
// at_least. Only normalise accepts tensors in bf16; the tensors of the other ops are f32, f64 or c128. The noise of the
// samples has no gradient.
#include "engine/math/row.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// The op at_least: max(x, least), and its gradient.
template <class A>
HD A at_least_point(A x, A least) {
    return real_of(x) > real_of(least) ? x : least;
}
template <class A>
HD A at_least_point_grad(A dy, A x, A least) {
    return real_of(x) > real_of(least) ? dy : A(0);
}

// Returns how many numbers kl has per row. If kl is (B,Z), it has one term for each number of the latent, and the
// result is Z. If kl is (B), it has the sum of the terms, and the result is 1.
int kls_of(const char* op, const View& kl, const View& x) {
    const std::int64_t Z = x.columns() / 2;
    if ((kl.shape != Shape{x.rows()} && kl.shape != Shape{x.rows(), Z}) || kl.dtype != x.dtype)
        throw Error(op, ": kl ", kl.path, " is ", kl.shape, ", expected (", x.rows(), ") or (", x.rows(), ',', Z, ')');
    return kl.shape.rank == 2 ? int(Z) : 1;
}

}  // namespace

void normalise_forward(View x, int heads, View y, View inverse) {
    const int Z = int(x.columns()) / heads;
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(x.rows() * heads,
                     row_call<normalise_row<S, A, Lanes>>(by_row<S>(x, Z), by_row<S>(y, Z), by_row<A>(inverse, 1), Z));
    });
}

void normalise_backward(View dy, View y, View inverse, int heads, Grad dx) {
    if (!dx) return;
    const int Z = int(y.columns()) / heads;
    for_type(y.dtype, [&]<class S, class A>(S, A) {
        for_each_row(y.rows() * heads,
                     row_call<normalise_row_grad<S, A, Lanes>>(by_row<S>(dy, Z), by_row<S>(y, Z), by_row<A>(inverse, 1),
                                                               by_row<S>(dx.view, Z), dx.add, Z));
    });
}

void vmf_sample_forward(View mu, View w, View e, View z) {
    for_latent_rows(mu, [&]<class A>(A) { return row_call<vmf_sample_row<A, Lanes>>(mu, w, e, z, mu.columns()); });
}

void vmf_sample_backward(View dz, View mu, View w, View e, Grad dmu, Grad dw) {
    if (!dmu && !dw) return;
    for_latent_rows(mu, [&]<class A>(A) {
        return row_call<vmf_sample_row_grad<A, Lanes>>(dz, mu, w, e, dmu, dw, mu.columns());
    });
}

void gaussian_sample_forward(View x, View e, View z) {
    for_latent_rows(x, [&]<class A>(A) { return row_call<gaussian_sample_row<A, Lanes>>(x, e, z, e.columns()); });
}

void gaussian_sample_backward(View dz, View x, View e, Grad dx) {
    if (!dx) return;
    for_latent_rows(x, [&]<class A>(A) {
        return row_call<gaussian_sample_row_grad<A, Lanes>>(dz, x, e, dx, e.columns());
    });
}

void gaussian_kl_forward(View x, View prior, View kl) {
    const int Z = int(x.columns()) / 2, kls = kls_of("gaussian_kl_forward", kl, x);
    for_latent_rows(x, [&]<class A>(A) {
        return row_call<gaussian_kl_row<A, Lanes>>(x, prior, by_row<A>(kl, kls), kls, Z);
    });
}

void gaussian_kl_backward(View dkl, View x, View prior, Grad dx, Grad dprior) {
    const int Z = int(x.columns()) / 2, kls = kls_of("gaussian_kl_backward", dkl, x);
    if (!dx && !dprior) return;
    for_latent_rows(x, [&]<class A>(A) {
        return row_call<gaussian_kl_row_grad<A, Lanes>>(by_row<A>(dkl, kls), kls, x, prior, dx, dprior, Z);
    });
}

void at_least_forward(View x, double least, View y) {
    for_latent(x, [&]<class A>(A) { store_points<A, at_least_point<A>>({y}, x, A(least)); });
}

void at_least_backward(View dy, View x, double least, Grad dx) {
    for_latent(x, [&]<class A>(A) { store_points<A, at_least_point_grad<A>>(dx, dy, x, A(least)); });
}

}  // namespace masquerade::DEVICE

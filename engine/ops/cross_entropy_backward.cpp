// SPDX-License-Identifier: MIT
// The forward of cross_entropy has already computed h1, w1 and b1, the gradients of `total`. The backward only
// multiplies them by dtotal.
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

void scale(const View& dtotal, const char* from, const View& share, const char* role, const Grad& to) {
    if (!to) return;
    const char* op = "cross_entropy backward";
    if (!share)
        throw Error(text(op, ": ", role, " ", to.view.path, " is wanted, expected ", from, " from the forward"));
    expect_grad(op, role, to, share);
    for_type(share.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(share.count(), to.view.as<S>(), to.add, point_call<times<A>>(one<A>(dtotal), by_point<S>(share)));
    });
}

}  // namespace

void cross_entropy_backward(View dtotal, View h1, View w1, View b1, Grad dh, Grad dw, Grad db) {
    expect_shape("cross_entropy backward", "dtotal", dtotal, {1}, arithmetic_of(dtotal.dtype));
    scale(dtotal, "h1", h1, "dh", dh);
    scale(dtotal, "w1", w1, "dw", dw);
    scale(dtotal, "b1", b1, "db", db);
}

}  // namespace masquerade::DEVICE

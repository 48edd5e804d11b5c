// SPDX-License-Identifier: MIT
// The forward of cross_entropy has already computed h1, w1 and b1, the gradients of `total` with respect to h, w and b.
// The backward only multiplies these gradients by dtotal.
#include "engine/math/point.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

void scale(const View& dtotal, const char* from, const View& share, const char* role, const Grad& to) {
    if (!to) return;
    if (!share)
        throw Error("cross_entropy backward: ", role, ' ', to.view.path, " is wanted, expected ", from,
                    " from the forward");
    for_type(share.dtype, [&]<class S, class A>(S, A) { store_points<S, times<A>>(to, one<A>(dtotal), share); });
}

}  // namespace

void cross_entropy_backward(View dtotal, View h1, View w1, View b1, Grad dh, Grad dw, Grad db) {
    scale(dtotal, "h1", h1, "dh", dh);
    scale(dtotal, "w1", w1, "dw", dw);
    scale(dtotal, "b1", b1, "db", db);
}

}  // namespace masquerade::DEVICE

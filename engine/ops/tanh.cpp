// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
HD A tanh_point(A x) {
    return tanh_of(x);
}
template <class A>
HD A tanh_point_grad(A dy, A y) {
    return dy * tanh_grad(y);
}

}  // namespace

void tanh_forward(View x, View y) {
    expect_same_shape("tanh", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), y.as<S>(), false, point_call<tanh_point<A>>(by_point<S>(x)));
    });
}

void tanh_backward(View dy, View y, Grad dx) {
    expect_same_shape("tanh backward", "dy", dy, "y", y);
    expect_grad("tanh backward", "dx", dx, y);
    if (!dx) return;
    for_type(y.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(y.count(), dx.view.as<S>(), dx.add,
                     point_call<tanh_point_grad<A>>(by_point<S>(dy), by_point<S>(y)));
    });
}

}  // namespace masquerade::DEVICE

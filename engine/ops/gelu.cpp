// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
void gelu_forward(View x, GeluKind kind, View y) {
    expect_same_shape("gelu", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const auto run = [&](auto f) { store_points(x.count(), y.as<S>(), false, f); };
        if (kind == GeluKind::tanh)
            run(point_call<gelu_tanh<A>>(by_point<S>(x)));
        else
            run(point_call<gelu<A>>(by_point<S>(x)));
    });
}

void gelu_backward(View dy, View x, GeluKind kind, Grad dx) {
    expect_same_shape("gelu backward", "dy", dy, "x", x);
    expect_grad("gelu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const auto run = [&](auto f) { store_points(x.count(), dx.view.as<S>(), dx.add, f); };
        if (kind == GeluKind::tanh)
            run(point_call<along<A, gelu_tanh_grad<A>>>(by_point<S>(dy), by_point<S>(x)));
        else
            run(point_call<along<A, gelu_grad<A>>>(by_point<S>(dy), by_point<S>(x)));
    });
}

}  // namespace masquerade::DEVICE

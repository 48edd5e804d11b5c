// SPDX-License-Identifier: MIT
// The ops silu and squared_relu, which are activations of feed-forward layers, and glu, the gated linear unit.
#include "engine/math/gate.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

void check_glu(const char* op, const View& x, const View& y) {
    expect_shape(op, "x", x, {y.rows(), 2 * y.columns()}, y.dtype);
}

}  // namespace

void silu_forward(View x, View y) {
    expect_same_shape("silu", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), y.as<S>(), false, point_call<silu<A>>(by_point<S>(x)));
    });
}

void silu_backward(View dy, View x, Grad dx) {
    expect_same_shape("silu backward", "dy", dy, "x", x);
    expect_grad("silu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), dx.view.as<S>(), dx.add,
                     point_call<along<A, silu_grad<A>>>(by_point<S>(dy), by_point<S>(x)));
    });
}

void squared_relu_forward(View x, View y) {
    expect_same_shape("squared_relu", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), y.as<S>(), false, point_call<squared_relu<A>>(by_point<S>(x)));
    });
}

void squared_relu_backward(View dy, View x, Grad dx) {
    expect_same_shape("squared_relu backward", "dy", dy, "x", x);
    expect_grad("squared_relu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), dx.view.as<S>(), dx.add,
                     point_call<along<A, squared_relu_grad<A>>>(by_point<S>(dy), by_point<S>(x)));
    });
}

void glu_forward(View x, GateKind kind, View y) {
    check_glu("glu", x, y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const auto by = [&](auto row) { for_each_row(y.rows(), row(by_row<S>(x), by_row<S>(y), int(y.columns()))); };
        if (kind == GateKind::silu)
            by([](auto... a) { return row_call<glu_row<S, A, silu<A>, Lanes>>(a...); });
        else if (kind == GateKind::gelu)
            by([](auto... a) { return row_call<glu_row<S, A, gelu<A>, Lanes>>(a...); });
        else
            by([](auto... a) { return row_call<glu_row<S, A, gelu_tanh<A>, Lanes>>(a...); });
    });
}

void glu_backward(View dy, View x, GateKind kind, Grad dx) {
    check_glu("glu backward", x, dy);
    expect_grad("glu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const auto by = [&](auto row) {
            for_each_row(dy.rows(), row(by_row<S>(dy), by_row<S>(x), by_row<S>(dx), dx.add, int(dy.columns())));
        };
        if (kind == GateKind::silu)
            by([](auto... a) { return row_call<glu_row_grad<S, A, silu<A>, silu_grad<A>, Lanes>>(a...); });
        else if (kind == GateKind::gelu)
            by([](auto... a) { return row_call<glu_row_grad<S, A, gelu<A>, gelu_grad<A>, Lanes>>(a...); });
        else
            by([](auto... a) { return row_call<glu_row_grad<S, A, gelu_tanh<A>, gelu_tanh_grad<A>, Lanes>>(a...); });
    });
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Element-wise ops: activations and the sum of two tensors. along<A, g> (math/point.h) computes dy g(x), where g is the
// derivative of the activation. by_point() passes numbers on unchanged. store_points() skips an absent gradient.
#include "engine/math/gate.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
HD A tanh_point(A x) {
    return tanh_of(x);
}
// dx = dy (1 - y^2), where y = tanh(x) is the output of the forward
template <class A>
HD A tanh_point_grad(A dy, A y) {
    return dy * tanh_grad(y);
}
template <class A>
HD A add_point(A a, A b) {
    return a + b;
}

}  // namespace

void tanh_forward(View x, View y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, tanh_point<A>>({y}, x); });
}

void tanh_backward(View dy, View y, Grad dx) {
    for_type(y.dtype, [&]<class S, class A>(S, A) { store_points<S, tanh_point_grad<A>>(dx, dy, y); });
}

void gelu_forward(View x, GeluKind kind, View y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        if (kind == GeluKind::tanh)
            store_points<S, gelu_tanh<A>>({y}, x);
        else
            store_points<S, gelu<A>>({y}, x);
    });
}

void gelu_backward(View dy, View x, GeluKind kind, Grad dx) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        if (kind == GeluKind::tanh)
            store_points<S, along<A, gelu_tanh_grad<A>>>(dx, dy, x);
        else
            store_points<S, along<A, gelu_grad<A>>>(dx, dy, x);
    });
}

void silu_forward(View x, View y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, silu<A>>({y}, x); });
}

void silu_backward(View dy, View x, Grad dx) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, along<A, silu_grad<A>>>(dx, dy, x); });
}

void squared_relu_forward(View x, View y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, squared_relu<A>>({y}, x); });
}

void squared_relu_backward(View dy, View x, Grad dx) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, along<A, squared_relu_grad<A>>>(dx, dy, x); });
}

void add_forward(View a, View b, View y) {
    for_type(a.dtype, [&]<class S, class A>(S, A) { store_points<S, add_point<A>>({y}, a, b); });
}

// da = dy,  db = dy. If a and b are the same tensor, the caller sets db.add, so that dy is added a second time.
void add_backward(View dy, Grad da, Grad db) {
    for_type(dy.dtype, [&]<class S, class A>(S, A) {
        for (const Grad& d : {da, db}) store_points<S>(d, by_point<S>(dy));
    });
}

}  // namespace masquerade::DEVICE

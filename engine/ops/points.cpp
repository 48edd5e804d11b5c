// SPDX-License-Identifier: MIT
// Element-wise ops: activations and the sum of two tensors. by_point() passes numbers on unchanged. store_points()
// skips an absent gradient.
#include "engine/math/gate.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// The forward and the backward of the activation G. `x` is what G::slope() takes: usually the input of the forward.
template <class G>
void activate(const View& x, const View& y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, G::template value<A>>({y}, x); });
}
template <class G>
void activate_grad(const View& dy, const View& x, const Grad& dx) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, along<G, A>>(dx, dy, x); });
}

template <class A>
HD A add_point(A a, A b) {
    return a + b;
}

}  // namespace

void tanh_forward(View x, View y) { activate<Tanh>(x, y); }
void tanh_backward(View dy, View y, Grad dx) { activate_grad<Tanh>(dy, y, dx); }

void gelu_forward(View x, GeluKind kind, View y) {
    kind == GeluKind::tanh ? activate<GeluTanh>(x, y) : activate<Gelu>(x, y);
}
void gelu_backward(View dy, View x, GeluKind kind, Grad dx) {
    kind == GeluKind::tanh ? activate_grad<GeluTanh>(dy, x, dx) : activate_grad<Gelu>(dy, x, dx);
}

void silu_forward(View x, View y) { activate<Silu>(x, y); }
void silu_backward(View dy, View x, Grad dx) { activate_grad<Silu>(dy, x, dx); }

void squared_relu_forward(View x, View y) { activate<SquaredRelu>(x, y); }
void squared_relu_backward(View dy, View x, Grad dx) { activate_grad<SquaredRelu>(dy, x, dx); }

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

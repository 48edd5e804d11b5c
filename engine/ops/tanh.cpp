// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Forward {
    const S* x;
    HD A operator()(std::int64_t i) const { return tanh_of(A(x[i])); }
};
template <class S, class A>
struct Backward {
    const S *dy, *y;
    HD A operator()(std::int64_t i) const { return A(dy[i]) * tanh_grad(A(y[i])); }
};

}  // namespace

void tanh_forward(View x, View y) {
    expect_same_shape("tanh", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), y.as<S>(), false, Forward<S, A>{x.as<S>()});
    });
}

void tanh_backward(View dy, View y, Grad dx) {
    expect_same_shape("tanh backward", "dy", dy, "y", y);
    expect_grad("tanh backward", "dx", dx, y);
    if (!dx) return;
    for_type(y.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(y.count(), dx.view.as<S>(), dx.add, Backward<S, A>{dy.as<S>(), y.as<S>()});
    });
}

}  // namespace masquerade::DEVICE

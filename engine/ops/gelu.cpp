// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A, bool by_tanh>
struct Forward {
    const S* x;
    HD A operator()(std::int64_t i) const { return by_tanh ? gelu_tanh(A(x[i])) : gelu(A(x[i])); }
};

template <class S, class A, bool by_tanh>
struct Backward {
    const S *dy, *x;
    HD A operator()(std::int64_t i) const {
        return A(dy[i]) * (by_tanh ? gelu_tanh_grad(A(x[i])) : gelu_grad(A(x[i])));
    }
};

}  // namespace

void gelu_forward(View x, GeluKind kind, View y) {
    expect_same_shape("gelu", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        if (kind == GeluKind::tanh)
            store_points(x.count(), y.as<S>(), false, Forward<S, A, true>{x.as<S>()});
        else
            store_points(x.count(), y.as<S>(), false, Forward<S, A, false>{x.as<S>()});
    });
}

void gelu_backward(View dy, View x, GeluKind kind, Grad dx) {
    expect_same_shape("gelu backward", "dy", dy, "x", x);
    expect_grad("gelu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        S* to = dx.view.as<S>();
        if (kind == GeluKind::tanh)
            store_points(x.count(), to, dx.add, Backward<S, A, true>{dy.as<S>(), x.as<S>()});
        else
            store_points(x.count(), to, dx.add, Backward<S, A, false>{dy.as<S>(), x.as<S>()});
    });
}

}  // namespace masquerade::DEVICE

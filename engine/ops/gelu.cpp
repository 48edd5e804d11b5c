// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A, bool by_tanh>
struct Forward {
    const S* x;
    S* y;
    HD void operator()(std::int64_t i) const { y[i] = S(by_tanh ? gelu_tanh(A(x[i])) : gelu(A(x[i]))); }
};

template <class S, class A, bool by_tanh>
struct Backward {
    const S *dy, *x;
    S* dx;
    bool add;
    HD void operator()(std::int64_t i) const {
        put(dx[i], A(dy[i]) * (by_tanh ? gelu_tanh_grad(A(x[i])) : gelu_grad(A(x[i]))), add);
    }
};

}  // namespace

void gelu_forward(View x, GeluKind kind, View y) {
    expect_same_shape("gelu", "x", x, "y", y);
    for_type(x.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        if (kind == GeluKind::tanh) for_each_point(x.count(), Forward<S, A, true>{x.as<S>(), y.as<S>()});
        else for_each_point(x.count(), Forward<S, A, false>{x.as<S>(), y.as<S>()});
    });
}

void gelu_backward(View dy, View x, GeluKind kind, Grad dx) {
    expect_same_shape("gelu backward", "dy", dy, "x", x);
    expect_grad("gelu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        S* to = dx.view.as<S>();
        if (kind == GeluKind::tanh)
            for_each_point(x.count(), Backward<S, A, true>{dy.as<S>(), x.as<S>(), to, dx.add});
        else for_each_point(x.count(), Backward<S, A, false>{dy.as<S>(), x.as<S>(), to, dx.add});
    });
}

}  // namespace masquerade::DEVICE

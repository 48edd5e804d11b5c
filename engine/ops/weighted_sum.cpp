// SPDX-License-Identifier: MIT
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
struct Forward {
    const A *x, *weights;
    A* y;
    int n;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t) const {
        A s = sum(lanes, n, [&](int i) { return weights[i] * x[i]; });
        if (first(lanes)) *y = s;
    }
};

template <class A>
struct Backward {
    const A *dy, *weights;
    A* dx;
    bool add;
    HD void operator()(std::int64_t i) const { put(dx[i], *dy * weights[i], add); }
};

}  // namespace

void weighted_sum_forward(View x, View weights, View y) {
    expect_same_shape("weighted_sum", "x", x, "weights", weights);
    expect_shape("weighted_sum", "y", y, {1}, x.dtype);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(1, Forward<A>{x.as<A>(), weights.as<A>(), y.as<A>(), int(x.count())});
    });
}

void weighted_sum_backward(View dy, View weights, Grad dx) {
    expect_shape("weighted_sum backward", "dy", dy, {1}, weights.dtype);
    expect_grad("weighted_sum backward", "dx", dx, weights);
    if (!dx) return;
    for_type(weights.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_point(weights.count(), Backward<A>{dy.as<A>(), weights.as<A>(), dx.view.as<A>(), dx.add});
    });
}

}  // namespace masquerade::DEVICE

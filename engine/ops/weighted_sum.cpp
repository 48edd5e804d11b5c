// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
HD void weighted_sum_row(Lanes lanes, const A* x, const A* weights, A* y, int n) {
    A s = sum(lanes, n, [&](int i) { return weights[i] * x[i]; });
    if (first(lanes)) *y = s;
}

}  // namespace

void weighted_sum_forward(View x, View weights, View y) {
    expect_same_shape("weighted_sum", "x", x, "weights", weights);
    expect_shape("weighted_sum", "y", y, {1}, x.dtype);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(1, row_call<weighted_sum_row<A>>(x.as<A>(), weights.as<A>(), y.as<A>(), int(x.count())));
    });
}

void weighted_sum_backward(View dy, View weights, Grad dx) {
    expect_shape("weighted_sum backward", "dy", dy, {1}, weights.dtype);
    expect_grad("weighted_sum backward", "dx", dx, weights);
    if (!dx) return;
    for_type(weights.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(weights.count(), dx.view.as<A>(), dx.add, point_call<times<A>>(one<A>(dy), by_point<A>(weights)));
    });
}

}  // namespace masquerade::DEVICE

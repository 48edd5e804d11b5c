// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
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
    for_latent(x, [&]<class A>(A) { for_each_row(1, row_call<weighted_sum_row<A>>(x, weights, y, x.count())); });
}

void weighted_sum_backward(View dy, View weights, Grad dx) {
    for_latent(weights, [&]<class A>(A) { store_points<A, times<A>>(dx, one<A>(dy), weights); });
}

}  // namespace masquerade::DEVICE

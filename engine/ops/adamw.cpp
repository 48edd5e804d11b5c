// SPDX-License-Identifier: MIT
#include "engine/math/scalar.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
struct Step {
    A* p;
    const A* g;
    A *m, *v;
    const A *norm, *control;
    A beta1, beta2, eps, decay, clip;
    HD void operator()(std::int64_t i) const {
        A scale = real_of(clip) > 0 && real_of(*norm) > real_of(clip) ? clip / *norm : A(1);
        A gradient = g[i] * scale;
        m[i] = beta1 * m[i] + (A(1) - beta1) * gradient;
        v[i] = beta2 * v[i] + (A(1) - beta2) * gradient * gradient;
        p[i] -= control[0] * (m[i] * control[1] / (sqrt_of(v[i] * control[2]) + eps) + decay * p[i]);
    }
};

}  // namespace

void adamw(View p, View g, View m, View v, View norm, View control, AdamWRule rule) {
    expect_same_shape("adamw", "p", p, "g", g);
    expect_same_shape("adamw", "p", p, "m", m);
    expect_same_shape("adamw", "p", p, "v", v);
    expect_shape("adamw", "norm", norm, {1}, p.dtype);
    expect_shape("adamw", "control", control, {3}, p.dtype);
    for_type(p.dtype, [&](auto types) {
        using A = typename decltype(types)::A;
        for_each_point(p.count(), Step<A>{p.as<A>(), g.as<A>(), m.as<A>(), v.as<A>(), norm.as<A>(), control.as<A>(),
                                          A(rule.beta1), A(rule.beta2), A(rule.eps), A(rule.decay), A(rule.clip)});
    });
}

}  // namespace masquerade::DEVICE

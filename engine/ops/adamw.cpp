// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

constexpr std::int64_t at_once = 1024;

// Updates one block of parameters: `at_once` of them, or fewer in the last block.
template <class A>
struct Step {
    A* p;
    const A* g;
    A *m, *v;
    const A *norm, *control;
    A beta1, beta2, eps, decay, clip;
    std::int64_t count;
    bfloat16* rounded;  // receives the parameters p rounded to bf16; may be null
    HD void operator()(Lanes lanes, std::int64_t block) const {
        A scale = real_of(clip) > 0 && real_of(*norm) > real_of(clip) ? clip / *norm : A(1);
        AdamWFactors<A> factors{scale, beta1, beta2, control[0], control[1], control[2], eps, decay};
        std::int64_t begin = block * at_once, left = count - begin;
        const int here = int(left < at_once ? left : at_once);
        each(lanes, here, [&](int i) { adamw_point(factors, g[begin + i], p[begin + i], m[begin + i], v[begin + i]); });
        if constexpr (std::is_same_v<A, float>)
            if (rounded) each(lanes, here, [&](int i) { rounded[begin + i] = bfloat16(p[begin + i]); });
    }
};

}  // namespace

void adamw(View p, View g, View m, View v, View norm, View control, OptimiserRule rule, View rounded) {
    if (rounded.data) expect_shape("adamw", "rounded", rounded, p.shape, DType::bf16);
    for_type(p.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row((p.count() + at_once - 1) / at_once,
                     Step<A>{p.as<A>(), g.as<A>(), m.as<A>(), v.as<A>(), norm.as<A>(), control.as<A>(), A(rule.beta1),
                             A(rule.beta2), A(rule.eps), A(rule.decay), A(rule.clip), p.count(),
                             static_cast<bfloat16*>(rounded.data)});
    });
}

}  // namespace masquerade::DEVICE

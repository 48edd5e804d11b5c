// SPDX-License-Identifier: MIT
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Forward {
    const S *a, *b;
    S* y;
    HD void operator()(std::int64_t i) const { y[i] = S(A(a[i]) + A(b[i])); }
};

template <class S, class A>
struct Backward {
    const S* dy;
    S* dx;
    bool add;
    HD void operator()(std::int64_t i) const { put(dx[i], A(dy[i]), add); }
};

}  // namespace

void add_forward(View a, View b, View y) {
    expect_same_shape("add", "a", a, "b", b);
    expect_same_shape("add", "a", a, "y", y);
    for_type(a.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        for_each_point(a.count(), Forward<S, A>{a.as<S>(), b.as<S>(), y.as<S>()});
    });
}

// da = dy,  db = dy; where a and b are one tensor the second is added
void add_backward(View dy, Grad da, Grad db) {
    for (const Grad& d : {da, db}) {
        expect_grad("add backward", "dx", d, dy);
        if (!d) continue;
        for_type(dy.dtype, [&](auto types) {
            using S = typename decltype(types)::S;
            using A = typename decltype(types)::A;
            for_each_point(dy.count(), Backward<S, A>{dy.as<S>(), d.view.as<S>(), d.add});
        });
    }
}

}  // namespace masquerade::DEVICE

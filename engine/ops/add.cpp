// SPDX-License-Identifier: MIT
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
HD A add_point(A a, A b) {
    return a + b;
}

}  // namespace

void add_forward(View a, View b, View y) {
    expect_same_shape("add", "a", a, "b", b);
    expect_same_shape("add", "a", a, "y", y);
    for_type(a.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(a.count(), y.as<S>(), false, point_call<add_point<A>>(by_point<S>(a), by_point<S>(b)));
    });
}

// da = dy,  db = dy. If a and b are the same tensor, the caller sets db.add, so that dy is added a second time.
void add_backward(View dy, Grad da, Grad db) {
    for (const Grad& d : {da, db}) {
        expect_grad("add backward", "dx", d, dy);
        if (!d) continue;
        for_type(dy.dtype, [&]<class S, class A>(Types<S, A>) {
            store_points(dy.count(), d.view.as<S>(), d.add, by_point<S>(dy));
        });
    }
}

}  // namespace masquerade::DEVICE

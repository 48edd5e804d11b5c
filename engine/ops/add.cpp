// SPDX-License-Identifier: MIT
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Sum {
    const S *a, *b;
    HD A operator()(std::int64_t i) const { return A(a[i]) + A(b[i]); }
};

template <class S>
struct Same {
    const S* dy;
    HD S operator()(std::int64_t i) const { return dy[i]; }
};

}  // namespace

void add_forward(View a, View b, View y) {
    expect_same_shape("add", "a", a, "b", b);
    expect_same_shape("add", "a", a, "y", y);
    for_type(a.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(a.count(), y.as<S>(), false, Sum<S, A>{a.as<S>(), b.as<S>()});
    });
}

// da = dy,  db = dy; where a and b are one tensor the second is added
void add_backward(View dy, Grad da, Grad db) {
    for (const Grad& d : {da, db}) {
        expect_grad("add backward", "dx", d, dy);
        if (!d) continue;
        for_type(dy.dtype, [&]<class S, class A>(Types<S, A>) {
            store_points(dy.count(), d.view.as<S>(), d.add, Same<S>{dy.as<S>()});
        });
    }
}

}  // namespace masquerade::DEVICE

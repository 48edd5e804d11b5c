// SPDX-License-Identifier: MIT
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Forward {
    const S* x;
    const A* w;
    int C;
    HD A operator()(std::int64_t i) const { return A(x[i]) * w[i % C]; }
};

// dx = dy w
template <class S, class A>
struct Backward {
    const S* dy;
    const A* w;
    int C;
    S* dx;
    bool add;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        if (dx) store(lanes, C, dx + n * C, add, [&](int i) { return A(dy[n * C + i]) * w[i]; });
    }
};

// The terms of dw = sum over rows of dy x.
template <class S, class A>
struct WeightTerm {
    const S *dy, *x;
    int C;
    HD A operator()(std::int64_t n, int i) const { return A(dy[n * C + i]) * A(x[n * C + i]); }
};

}  // namespace

void scale_columns_forward(View x, View w, View y) {
    expect_shape("scale_columns", "w", w, {x.columns()}, arithmetic_of(x.dtype));
    expect_same_shape("scale_columns", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), y.as<S>(), false, Forward<S, A>{x.as<S>(), w.as<A>(), int(x.columns())});
    });
}

void scale_columns_backward(View dy, View x, View w, Grad dx, Grad dw) {
    expect_same_shape("scale_columns backward", "dy", dy, "x", x);
    expect_grad("scale_columns backward", "dx", dx, x);
    expect_grad("scale_columns backward", "dw", dw, w);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const int C = int(x.columns());
        for_each_row_and_sums(x.rows(), C, Backward<S, A>{dy.as<S>(), w.as<A>(), C, dx.view.as<S>(), dx.add},
                              ColumnSum<A, WeightTerm<S, A>>{dw.view.as<A>(), dw.add, {dy.as<S>(), x.as<S>(), C}});
    });
}

}  // namespace masquerade::DEVICE

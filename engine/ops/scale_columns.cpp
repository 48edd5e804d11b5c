// SPDX-License-Identifier: MIT
// The op scale_columns: y = x w, where column c of x(N,C) is multiplied by w[c].
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// x is number i of the tensor, counted row by row. Number() in the call stands for i (calls.h).
template <class A>
HD A scale_point(A x, const A* w, int C, std::int64_t i) {
    return x * w[i % C];
}

// dx = dy w, for one row
template <class S, class A>
HD void scale_row_grad(Lanes lanes, const S* dy, const A* w, S* dx, bool add, int C) {
    if (dx) store(lanes, C, dx, add, [&](int i) { return A(dy[i]) * w[i]; });
}

// dw is the sum over all rows of dy x. operator() returns the term of row n in column i of dw.
template <class S, class A>
struct WeightTerm {
    const S *dy, *x;
    int C;
    HD A operator()(std::int64_t n, int i) const { return A(dy[n * C + i]) * A(x[n * C + i]); }
};

}  // namespace

void scale_columns_forward(View x, View w, View y) {
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points<S>({y}, point_call<S, scale_point<A>>(x, w.as<A>(), int(x.columns()), Number()));
    });
}

void scale_columns_backward(View dy, View x, View w, Grad dx, Grad dw) {
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const int C = int(x.columns());
        for_each_row_and_sums(x.rows(), C, row_call<scale_row_grad<S, A>>(dy, w.as<A>(), dx, C),
                              ColumnSum(dw, WeightTerm<S, A>{dy.as<S>(), x.as<S>(), C}));
    });
}

}  // namespace masquerade::DEVICE

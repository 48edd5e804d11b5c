// SPDX-License-Identifier: MIT
// The op scale_columns: y = x w, where column c of x(N,C) is multiplied by w[c].
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Computes one row of y = x w. The backward is the same product: dx = dy w.
template <class S, class A, class Lanes>
HD void scale_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const A> w, Row<Lanes, S> y, bool add, int C) {
    if (y) store(lanes, C, y, add, [&](auto i) { return A(x[i]) * w[i]; });
}
template <class S, class A>
auto scaled(const View& x, const View& w, const Grad& y) {
    return in_packets<S>(
        [&]<class Lanes>(Lanes) { return row_call<scale_row<S, A, Lanes>>(x, w.as<A>(), y, x.columns()); });
}

// dw is the sum over all rows of dy x. operator() returns the term of a row, where x[0] is an element of dy, and x[1]
// the element of x in the same place.
struct WeightTerm {
    template <class A>
    HD A operator()(std::int64_t, const A (&x)[2]) const {
        return x[0] * x[1];
    }
};

}  // namespace

void scale_columns_forward(View x, View w, View y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) { for_each_row(x.rows(), scaled<S, A>(x, w, {y, false})); });
}

void scale_columns_backward(View dy, View x, View w, Grad dx, Grad dw) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        const int C = int(x.columns());
        for_each_row_and_sums(x.rows(), C, scaled<S, A>(dy, w, dx),
                              ColumnSum(dw, matrix_term<S, A>(WeightTerm(), dy, x)));
    });
}

}  // namespace masquerade::DEVICE

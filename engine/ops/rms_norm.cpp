// SPDX-License-Identifier: MIT
#include "engine/math/rms_norm.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// The term of row n in dw = sum over rows of dy x inverse, in column i.
template <class S, class A>
struct WeightTerm {
    const S *dy, *x;
    const A* inverse;
    int C;
    HD A operator()(std::int64_t n, int i) const { return A(dy[n * C + i]) * (A(x[n * C + i]) * inverse[n]); }
};

void check(const char* op, const View& x, const View& w, const View& y, const View& inverse) {
    expect_same_shape(op, "x", x, "y", y);
    expect_shape(op, "w", w, {x.columns()}, arithmetic_of(x.dtype));
    expect_shape(op, "inverse", inverse, {x.rows()}, arithmetic_of(x.dtype));
}

}  // namespace

void rms_norm_forward(View x, View w, double eps, View y, View inverse) {
    check("rms_norm", x, w, y, inverse);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(x.rows(), row_call<rms_norm_row<S, A, Lanes>>(by_row<S>(x), w.as<A>(), by_row<S>(y),
                                                                   by_row<A>(inverse), int(x.columns()), eps));
    });
}

void rms_norm_backward(View dy, View x, View w, View inverse, Grad dx, Grad dw) {
    check("rms_norm backward", x, w, dy, inverse);
    expect_grad("rms_norm backward", "dx", dx, x);
    expect_grad("rms_norm backward", "dw", dw, w);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const WeightTerm<S, A> term{dy.as<S>(), x.as<S>(), inverse.as<A>(), int(x.columns())};
        const auto row = row_call<rms_norm_row_grad<S, A, Lanes>>(by_row<S>(dy), by_row<S>(x), w.as<A>(),
                                                                  by_row<A>(inverse), by_row<S>(dx), dx.add, term.C);
        for_each_row_and_sums(x.rows(), term.C, row, ColumnSum<A, WeightTerm<S, A>>{dw.view.as<A>(), dw.add, term});
    });
}

}  // namespace masquerade::DEVICE

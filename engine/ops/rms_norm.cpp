// SPDX-License-Identifier: MIT
#include "engine/math/rms_norm.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// dw is the sum over all rows of dy x inverse, with inverse = 1 / sqrt(mean(x^2) + eps) for each row. operator()
// returns the term of row n in column i of dw.
template <class S, class A>
struct WeightTerm {
    const S *dy, *x;
    const A* inverse;
    int C;
    HD A operator()(std::int64_t n, int i) const { return A(dy[n * C + i]) * (A(x[n * C + i]) * inverse[n]); }
};

}  // namespace

void rms_norm_forward(View x, View w, double eps, View y, View inverse) {
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(x.rows(), in_packets<S>([&]<class Lanes>(Lanes) {
                         return row_call<rms_norm_row<S, A, Lanes>>(x, w.as<A>(), y, inverse, int(x.columns()), eps);
                     }));
    });
}

void rms_norm_backward(View dy, View x, View w, View inverse, Grad dx, Grad dw) {
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const WeightTerm<S, A> term{dy.as<S>(), x.as<S>(), inverse.as<A>(), int(x.columns())};
        const auto row = in_packets<S>([&]<class Lanes>(Lanes) {
            return row_call<rms_norm_row_grad<S, A, Lanes>>(dy, x, w.as<A>(), inverse, dx, term.C);
        });
        for_each_row_and_sums(x.rows(), term.C, row, ColumnSum(dw, term));
    });
}

}  // namespace masquerade::DEVICE

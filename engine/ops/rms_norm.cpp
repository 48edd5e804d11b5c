// SPDX-License-Identifier: MIT
#include "engine/math/rms_norm.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// dw is the sum over all rows of dy x inverse, with inverse = 1 / sqrt(mean(x^2) + eps) for each row. operator()
// returns the term of row n, where x[0] is an element of dy, and x[1] the element of x in the same place.
template <class A>
struct WeightTerm {
    const A* inverse;
    HD A operator()(std::int64_t n, const A (&x)[2]) const { return x[0] * (x[1] * inverse[n]); }
};

}  // namespace

void rms_norm_forward(View x, View w, double eps, View y, View inverse) {
    for_packet_rows(x, x.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
        return row_call<rms_norm_row<S, A, Lanes>>(x, w.as<A>(), y, inverse, x.columns(), eps);
    });
}

void rms_norm_backward(View dy, View x, View w, View inverse, Grad dx, Grad dw) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        const int C = int(x.columns());
        const auto row = in_packets<S>([&]<class Lanes>(Lanes) {
            return row_call<rms_norm_row_grad<S, A, Lanes>>(dy, x, w.as<A>(), inverse, dx, C);
        });
        for_each_row_and_sums(x.rows(), C, row,
                              ColumnSum(dw, matrix_term<S, A>(WeightTerm<A>{inverse.as<A>()}, dy, x)));
    });
}

}  // namespace masquerade::DEVICE

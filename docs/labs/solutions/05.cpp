// SPDX-License-Identifier: MIT
// Lab 5, solved. The backward needs only x: it computes s again from a.
#include "docs/labs/05/lab.h"

namespace masquerade {

// y = a s b,   s = 1 / (1 + exp(-a))   (Shazeer 2020)
template <class S, class A, class Lanes>
HD void swiglu_row(Lanes lanes, const S* x, S* y, int F) {
    store(lanes, F, y, false, [&](int i) {
        const A a = A(x[i]), s = A(1) / (A(1) + exp_of(-a));
        return a * s * A(x[F + i]);
    });
}
// da = dy b (s + a s (1 - s)),   db = dy a s
template <class S, class A, class Lanes>
HD void swiglu_row_grad(Lanes lanes, const S* dy, const S* x, S* dx, bool add, int F) {
    each(lanes, F, [&](int i) {
        const A a = A(x[i]), b = A(x[F + i]), s = A(1) / (A(1) + exp_of(-a));
        put(dx[i], A(dy[i]) * b * (s + a * s * (A(1) - s)), add);
        put(dx[F + i], A(dy[i]) * a * s, add);
    });
}

namespace DEVICE {
namespace {

// Returns F, half of the columns of x. Throws Error if the number of columns is odd.
int half(const char* op, const View& x) {
    if (x.columns() % 2 != 0) throw Error(op, ": ", seen("x", x), ", expected an even number of columns");
    return int(x.columns() / 2);
}

}  // namespace

void swiglu_forward(View x, View y) {
    const int F = half("swiglu", x);
    expect_shape("swiglu", "y", y, {x.rows(), F}, x.dtype);
    for_type(x.dtype,
             [&]<class S, class A>(S, A) { for_each_row(x.rows(), row_call<swiglu_row<S, A, Lanes>>(x, y, F)); });
}

void swiglu_backward(View dy, View x, Grad dx) {
    const int F = half("swiglu backward", x);
    expect_shape("swiglu backward", "dy", dy, {x.rows(), F}, x.dtype);
    expect_grad("swiglu backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(x.rows(), row_call<swiglu_row_grad<S, A, Lanes>>(dy, x, dx, F));
    });
}

}  // namespace DEVICE

// The check runs these two functions lane by lane.
template void swiglu_row<double, double>(Lane, const double*, double*, int);
template void swiglu_row_grad<double, double>(Lane, const double*, const double*, double*, bool, int);

}  // namespace masquerade

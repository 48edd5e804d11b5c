// SPDX-License-Identifier: MIT
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Forward {
    const S* x;
    const A *w, *b;
    S* y;
    A *mean, *rstd;
    int C;
    double eps;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        layernorm_row(lanes, x + n * C, w, b, y + n * C, mean + n, rstd + n, C, eps);
    }
};

template <class S, class A>
struct Backward {
    const S *dy, *x;
    const A *w, *mean, *rstd;
    S* dx;
    bool add;
    int C;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        layernorm_row_grad(lanes, dy + n * C, x + n * C, w, mean[n], rstd[n], dx + n * C, add, C);
    }
};

// The terms of dw = sum over rows of dy * xhat, and of db = sum over rows of dy.
template <class S, class A>
struct WeightTerm {
    const S *dy, *x;
    const A *mean, *rstd;
    int C;
    HD A operator()(std::int64_t n, int i) const {
        return A(dy[n * C + i]) * ((A(x[n * C + i]) - mean[n]) * rstd[n]);
    }
};
template <class S, class A>
struct BiasTerm {
    const S* dy;
    int C;
    HD A operator()(std::int64_t n, int i) const { return A(dy[n * C + i]); }
};

}  // namespace

void layernorm_forward(View x, View w, View b, double eps, View y, View mean, View rstd) {
    DType a = arithmetic_of(x.dtype);
    expect_shape("layernorm", "w", w, {x.columns()}, a);
    expect_shape("layernorm", "b", b, {x.columns()}, a);
    expect_same_shape("layernorm", "x", x, "y", y);
    expect_shape("layernorm", "mean", mean, {x.rows()}, a);
    expect_shape("layernorm", "rstd", rstd, {x.rows()}, a);
    for_type(x.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        for_each_row(x.rows(), Forward<S, A>{x.as<S>(), w.as<A>(), b.as<A>(), y.as<S>(), mean.as<A>(), rstd.as<A>(),
                                             int(x.columns()), eps});
    });
}

void layernorm_backward(View dy, View x, View w, View mean, View rstd, Grad dx, Grad dw, Grad db) {
    DType a = arithmetic_of(x.dtype);
    expect_same_shape("layernorm backward", "dy", dy, "x", x);
    expect_shape("layernorm backward", "w", w, {x.columns()}, a);
    expect_shape("layernorm backward", "mean", mean, {x.rows()}, a);
    expect_shape("layernorm backward", "rstd", rstd, {x.rows()}, a);
    expect_grad("layernorm backward", "dx", dx, x);
    expect_grad("layernorm backward", "dw", dw, w);
    expect_grad("layernorm backward", "db", db, w);
    for_type(x.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        int C = int(x.columns());
        if (dx)
            for_each_row(x.rows(), Backward<S, A>{dy.as<S>(), x.as<S>(), w.as<A>(), mean.as<A>(), rstd.as<A>(),
                                                  dx.view.as<S>(), dx.add, C});
        if (dw)
            column_sums(x.rows(), C, WeightTerm<S, A>{dy.as<S>(), x.as<S>(), mean.as<A>(), rstd.as<A>(), C},
                        dw.view.as<A>(), dw.add);
        if (db) column_sums(x.rows(), C, BiasTerm<S, A>{dy.as<S>(), C}, db.view.as<A>(), db.add);
    });
}

}  // namespace masquerade::DEVICE

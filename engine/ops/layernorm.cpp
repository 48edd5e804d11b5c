// SPDX-License-Identifier: MIT
// layernorm, and residual_norm: what ends each half of a post-LN block, s = x + dropout(f), y = layernorm(s), in one
// pass over the rows.
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/drop.h"
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
struct ResidualForward {
    const S *x, *f;
    Drop<A> drop;
    S* s;
    Forward<S, A> norm;  // of s
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const std::int64_t row = n * norm.C;
        drop.store_row(lanes, n, norm.C, s + row, false,
                       [&](int i, auto dropped) { return A(x[row + i]) + dropped(A(f[row + i])); });
    }
};

// Row n of a backward: what it reads.
template <class S, class A>
struct Gradient {
    const S *dy, *x;
    const A *w, *mean, *rstd;
    int C;
    template <class Lanes>
    HD LayerNormGrad<S, A> of_row(Lanes lanes, std::int64_t n) const {
        return layernorm_row_grad(lanes, dy + n * C, x + n * C, w, mean[n], rstd[n], C);
    }
};

template <class S, class A>
struct Backward {
    Gradient<S, A> gradient;
    S* dx;
    bool add;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        if (dx) store(lanes, gradient.C, dx + n * gradient.C, add, gradient.of_row(lanes, n));
    }
};

// dx = ds,  df = ds keep / (1 - rate)
template <class S, class A>
struct ResidualBackward {
    Gradient<S, A> gradient;
    Drop<A> drop;
    S* dx;
    bool add_x;
    S* df;
    bool add_f;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int C = gradient.C;
        auto ds = gradient.of_row(lanes, n);
        if (dx) store(lanes, C, dx + n * C, add_x, ds);
        meet(lanes);  // df may be dx, and has its lanes elsewhere
        if (df) drop.store_row(lanes, n, C, df + n * C, add_f, [&](int i, auto dropped) { return dropped(ds(i)); });
    }
};

// The terms of dw = sum over rows of dy * xhat, and of db = sum over rows of dy.
template <class S, class A>
struct WeightTerm {
    Gradient<S, A> g;
    HD A operator()(std::int64_t n, int i) const {
        return A(g.dy[n * g.C + i]) * ((A(g.x[n * g.C + i]) - g.mean[n]) * g.rstd[n]);
    }
};
template <class S, class A>
struct BiasTerm {
    const S* dy;
    int C;
    HD A operator()(std::int64_t n, int i) const { return A(dy[n * C + i]); }
};

// f for every row, and the gradients of w and b.
template <class S, class A, class F>
void run_backward(std::int64_t rows, const Gradient<S, A>& gradient, F f, const Grad& dw, const Grad& db) {
    for_each_row_and_sums(rows, gradient.C, f, ColumnSum<A, WeightTerm<S, A>>{dw.view.as<A>(), dw.add, {gradient}},
                          ColumnSum<A, BiasTerm<S, A>>{db.view.as<A>(), db.add, {gradient.dy, gradient.C}});
}

void check_forward(const char* op, const View& x, const View& w, const View& b, const View& y, const View& mean,
                   const View& rstd) {
    DType a = arithmetic_of(x.dtype);
    expect_shape(op, "w", w, {x.columns()}, a);
    expect_shape(op, "b", b, {x.columns()}, a);
    expect_same_shape(op, "x", x, "y", y);
    expect_shape(op, "mean", mean, {x.rows()}, a);
    expect_shape(op, "rstd", rstd, {x.rows()}, a);
}

void check_backward(const char* op, const View& dy, const View& x, const View& w, const View& mean, const View& rstd,
                    const Grad& dw, const Grad& db) {
    DType a = arithmetic_of(x.dtype);
    expect_same_shape(op, "dy", dy, "x", x);
    expect_shape(op, "w", w, {x.columns()}, a);
    expect_shape(op, "mean", mean, {x.rows()}, a);
    expect_shape(op, "rstd", rstd, {x.rows()}, a);
    expect_grad(op, "dw", dw, w);
    expect_grad(op, "db", db, w);
}

}  // namespace

void layernorm_forward(View x, View w, View b, double eps, View y, View mean, View rstd) {
    check_forward("layernorm", x, w, b, y, mean, rstd);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(x.rows(), Forward<S, A>{x.as<S>(), w.as<A>(), b.as<A>(), y.as<S>(), mean.as<A>(), rstd.as<A>(),
                                             int(x.columns()), eps});
    });
}

void layernorm_backward(View dy, View x, View w, View mean, View rstd, Grad dx, Grad dw, Grad db) {
    check_backward("layernorm backward", dy, x, w, mean, rstd, dw, db);
    expect_grad("layernorm backward", "dx", dx, x);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        Gradient<S, A> gradient{dy.as<S>(), x.as<S>(), w.as<A>(), mean.as<A>(), rstd.as<A>(), int(x.columns())};
        run_backward(x.rows(), gradient, Backward<S, A>{gradient, dx.view.as<S>(), dx.add}, dw, db);
    });
}

void residual_norm_forward(View x, View f, RowNames rows, DropoutRule rule, View w, View b, double eps, View y, View s,
                           View mean, View rstd) {
    expect_same_shape("residual_norm", "x", x, "f", f);
    expect_same_shape("residual_norm", "x", x, "s", s);
    check_forward("residual_norm", x, w, b, y, mean, rstd);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        Forward<S, A> norm{s.as<S>(),    w.as<A>(),    b.as<A>(),        y.as<S>(),
                           mean.as<A>(), rstd.as<A>(), int(x.columns()), eps};
        Drop<A> drop = checked_drop<A>("residual_norm", f, rows, rule);
        for_each_row(x.rows(), ResidualForward<S, A>{x.as<S>(), f.as<S>(), drop, s.as<S>(), norm}, norm);
    });
}

void residual_norm_backward(View dy, View s, RowNames rows, DropoutRule rule, View w, View mean, View rstd, Grad dx,
                            Grad df, Grad dw, Grad db) {
    check_backward("residual_norm backward", dy, s, w, mean, rstd, dw, db);
    expect_grad("residual_norm backward", "dx", dx, s);
    expect_grad("residual_norm backward", "df", df, s);
    for_type(s.dtype, [&]<class S, class A>(Types<S, A>) {
        Gradient<S, A> gradient{dy.as<S>(), s.as<S>(), w.as<A>(), mean.as<A>(), rstd.as<A>(), int(s.columns())};
        Drop<A> drop = checked_drop<A>("residual_norm backward", s, rows, rule);
        ResidualBackward<S, A> row{gradient, drop, dx.view.as<S>(), dx.add, df.view.as<S>(), df.add};
        run_backward(s.rows(), gradient, row, dw, db);
    });
}

}  // namespace masquerade::DEVICE

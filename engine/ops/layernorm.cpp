// SPDX-License-Identifier: MIT
// The ops layernorm and residual_norm. residual_norm computes s = x + dropout(f), y = layernorm(s) in one pass over the
// rows. A post-LN Transformer layer calls residual_norm twice: after the attention and after the feed-forward network.
// f is the output of the attention or of the feed-forward network.
#include "engine/math/row.h"
#include "engine/ops/drop.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Computes row n of s = x + dropout(f).
template <class S, class A, class Lanes>
HD void residual_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const S> f, const Drop<A>& drop, std::int64_t n,
                     Row<Lanes, S> s, int C) {
    drop.store_row(
        lanes, n, C, s, false, [](auto, auto dropped, A u, A v) { return u + dropped(v); }, x, f);
}

template <class S, class A, class Lanes>
HD void store_layernorm_grad(Lanes lanes, Row<Lanes, const S> dy, Row<Lanes, const S> x, Row<Lanes, const A> w, A mean,
                             A rstd, Row<Lanes, S> dx, bool add, int C) {
    if (dx) store(lanes, C, dx, add, layernorm_row_grad<S>(lanes, dy, x, w, mean, rstd, C));
}

// Computes row n of dx = ds and df = ds keep / (1 - rate), where ds is the gradient of s = x + dropout(f), and keep is
// 1 for the columns that dropout kept in this row, else 0.
template <class S, class A, class Lanes>
HD void residual_row_grad(Lanes lanes, Row<Lanes, const S> dy, Row<Lanes, const S> s, Row<Lanes, const A> w, A mean,
                          A rstd, const Drop<A>& drop, std::int64_t n, Row<Lanes, S> dx, bool add_x, Row<Lanes, S> df,
                          bool add_f, int C) {
    auto ds = layernorm_row_grad<S>(lanes, dy, s, w, mean, rstd, C);
    if constexpr (!std::is_same_v<Lanes, OneLane>)
        if (dx && df && !add_x && !add_f)  // usual on a GPU: one loop, which computes ds once for both gradients
            return drop.each_part(lanes, n, C, [&](auto lane, int begin, int count, auto dropped) {
                store_two(lane, count, dx + begin, df + begin, [&](auto k) {
                    const A u = ds(begin + k);
                    return Two<A>{u, dropped(k, u)};
                });
            });
    if (dx) store(lanes, C, dx, add_x, ds);
    meet(lanes);  // df may be the same memory as dx, so all lanes must have written dx before df is written
    if (df) drop.store_row(lanes, n, C, df, add_f, [&](auto i, auto dropped) { return dropped(ds(i)); });
}

// dw is the sum over all rows of dy (x - mean) rstd, and db the sum over all rows of dy. operator() returns the term of
// dw for row n, where x[0] is an element of dy, and x[1] the element of x in the same place.
template <class A>
struct WeightTerm {
    const A *mean, *rstd;
    HD A operator()(std::int64_t n, const A (&x)[2]) const { return x[0] * ((x[1] - mean[n]) * rstd[n]); }
};

// The common part of the backwards of layernorm and residual_norm. For every row, calls f, which computes the gradients
// of the inputs. Also computes dw and db, as column sums.
template <class S, class A, class F>
void run_backward(const View& dy, const View& x, const View& mean, const View& rstd, F f, const Grad& dw,
                  const Grad& db) {
    for_each_row_and_sums(x.rows(), int(x.columns()), f,
                          ColumnSum(dw, matrix_term<S, A>(WeightTerm<A>{mean.as<A>(), rstd.as<A>()}, dy, x)),
                          ColumnSum(db, matrix_term<S, A>(Element(), dy, x)));
}

}  // namespace

void layernorm_forward(View x, View w, View b, double eps, View y, View mean, View rstd) {
    for_packet_rows(x, x.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
        return row_call<layernorm_row<S, A, Lanes>>(x, w.as<A>(), b.as<A>(), y, mean, rstd, x.columns(), eps);
    });
}

void layernorm_backward(View dy, View x, View w, View mean, View rstd, Grad dx, Grad dw, Grad db) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        const auto row = in_packets<S>([&]<class Lanes>(Lanes) {
            return row_call<store_layernorm_grad<S, A, Lanes>>(dy, x, w.as<A>(), mean, rstd, dx, x.columns());
        });
        run_backward<S, A>(dy, x, mean, rstd, row, dw, db);
    });
}

void residual_norm_forward(View x, View f, RowNames rows, DropoutRule rule, View w, View b, double eps, View y, View s,
                           View mean, View rstd) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        const int C = int(x.columns());
        const Drop<A> drop = checked_drop<A>("residual_norm", f, rows, rule);
        for_each_row(x.rows(), in_packets<S>([&]<class Lanes>(Lanes) {
                         return row_call<residual_row<S, A, Lanes>>(x, f, drop, Number(), s, C);
                     }),
                     in_packets<S>([&]<class Lanes>(Lanes) {
                         return row_call<layernorm_row<S, A, Lanes>>(s, w.as<A>(), b.as<A>(), y, mean, rstd, C, eps);
                     }));
    });
}

void residual_norm_backward(View dy, View s, RowNames rows, DropoutRule rule, View w, View mean, View rstd, Grad dx,
                            Grad df, Grad dw, Grad db) {
    for_type(s.dtype, [&]<class S, class A>(S, A) {
        const Drop<A> drop = checked_drop<A>("residual_norm backward", s, rows, rule);
        const auto row = in_packets<S>([&]<class Lanes>(Lanes) {
            return row_call<residual_row_grad<S, A, Lanes>>(dy, s, w.as<A>(), mean, rstd, drop, Number(), dx, df,
                                                            s.columns());
        });
        run_backward<S, A>(dy, s, mean, rstd, row, dw, db);
    });
}

}  // namespace masquerade::DEVICE

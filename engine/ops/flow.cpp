// SPDX-License-Identifier: MIT
// The blocks of a flow over rows of Z numbers, each with the log of its determinant, and the KL of a normal
// distribution to what the flow makes of N(0, 1). All in the arithmetic type.
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/latent_type.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// s = 2 tanh(r / 2), between -2 and 2; ds/dr = 1 - (s/2)^2.
template <class A>
HD A bounded(A r) {
    return A(2) * tanh_of(A(0.5) * r);
}

// x = a | b, st = r | t of b's length: y = a | b exp(s) + t.
template <class A>
struct Coupling {
    const A *x, *st;
    A *y, *log_det;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int half = Z / 2, from = Z - half;
        const A *own = x + n * Z, *r = st + n * 2 * half, *t = r + half;
        store(lanes, from, y + n * Z, false, [&](int i) { return own[i]; });
        store(lanes, half, y + n * Z + from, false,
              [&](int i) { return own[from + i] * exp_of(bounded(r[i])) + t[i]; });
        const A all = sum(lanes, half, [&](int i) { return bounded(r[i]); });
        if (first(lanes)) log_det[n] = all;
    }
};
template <class A>
struct CouplingBackward {
    const A *dy, *dlog_det, *x, *st;
    A *dx, *dst;
    bool add, add_st;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int half = Z / 2, from = Z - half;
        const A *own = x + n * Z, *r = st + n * 2 * half, *d = dy + n * Z;
        if (dx) {
            store(lanes, from, dx + n * Z, add, [&](int i) { return d[i]; });
            store(lanes, half, dx + n * Z + from, add, [&](int i) { return d[from + i] * exp_of(bounded(r[i])); });
        }
        if (!dst) return;
        A* to = dst + n * 2 * half;
        store(lanes, half, to, add_st, [&](int i) {
            const A s = bounded(r[i]), h = A(0.5) * s, ds = d[from + i] * own[from + i] * exp_of(s) + dlog_det[n];
            return ds * (A(1) - h * h);
        });
        store(lanes, half, to + half, add_st, [&](int i) { return d[from + i]; });
    }
};

// Gauss and Jordan with the largest number of a column as its pivot: `left` becomes 1, `inverse` what it says.
template <class A>
struct LogDet {
    const A* w;
    A *left, *inverse, *log_det;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t) const {
        each(lanes, Z * Z, [&](int i) {
            left[i] = w[i];
            inverse[i] = i / Z == i % Z ? A(1) : A(0);
        });
        A sum_of_logs(0);
        for (int k = 0; k < Z; k++) {
            meet(lanes);
            int pivot = k;
            for (int row = k + 1; row < Z; row++)
                if (size(left[row * Z + k]) > size(left[pivot * Z + k])) pivot = row;
            const A by = left[pivot * Z + k];
            sum_of_logs = sum_of_logs + log_of(real_of(by) < 0 ? -by : by);
            meet(lanes);
            each(lanes, Z, [&](int c) {
                const A l = left[k * Z + c], i = inverse[k * Z + c];
                left[k * Z + c] = left[pivot * Z + c] / by;
                inverse[k * Z + c] = inverse[pivot * Z + c] / by;
                if (pivot != k) left[pivot * Z + c] = l, inverse[pivot * Z + c] = i;
            });
            meet(lanes);
            for (int row = 0; row < Z; row++) {
                const A times = left[row * Z + k];
                meet(lanes);
                if (row == k) continue;
                each(lanes, Z, [&](int c) {
                    left[row * Z + c] = left[row * Z + c] - times * left[k * Z + c];
                    inverse[row * Z + c] = inverse[row * Z + c] - times * inverse[k * Z + c];
                });
            }
        }
        if (first(lanes)) *log_det = sum_of_logs;
    }
    HD static auto size(A x) { return real_of(x) < 0 ? -real_of(x) : real_of(x); }
};
template <class A>
struct LogDetBackward {
    const A *dlog_det, *inverse;
    int Z;
    HD A operator()(std::int64_t i) const { return *dlog_det * inverse[(i % Z) * Z + i / Z]; }
};

// x = mu | l and e as gaussian_sample has them.
template <class A>
struct FlowKl {
    const A *x, *e, *u, *log_dets, *log_det;
    A* kl;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const A all = sum(lanes, Z, [&](int i) {
            return A(0.5) * (u[n * Z + i] * u[n * Z + i] - e[n * Z + i] * e[n * Z + i] -
                             clamped_log_variance(x[n * 2 * Z + Z + i]));
        });
        if (first(lanes)) kl[n] = all - log_dets[n] - *log_det;
    }
};
template <class A>
struct FlowKlBackward {
    const A *dkl, *x, *u;
    A *dx, *du, *dlog_dets;
    bool add, add_u, add_dets;
    int Z;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const A* l = x + n * 2 * Z + Z;
        if (dx) {
            store(lanes, Z, dx + n * 2 * Z, add, [&](int) { return A(0); });
            store(lanes, Z, dx + n * 2 * Z + Z, add, [&](int i) { return inside_clamp(l[i]) * A(-0.5) * dkl[n]; });
        }
        if (du) store(lanes, Z, du + n * Z, add_u, [&](int i) { return dkl[n] * u[n * Z + i]; });
        if (dlog_dets && first(lanes)) put(dlog_dets[n], -dkl[n], add_dets);
    }
};
template <class A>
struct MinusTerm {
    const A* dkl;
    HD A operator()(std::int64_t n, int) const { return -dkl[n]; }
};

void check_coupling(const char* op, const View& x, const View& st, const View& log_det) {
    expect_shape(op, "st", st, {x.rows(), x.columns() / 2 * 2}, x.dtype);
    expect_shape(op, "log_det", log_det, {x.rows()}, x.dtype);
}
void check_kl(const char* op, const View& x, const View& e, const View& u, const View& kl) {
    expect_shape(op, "x", x, {u.rows(), 2 * u.columns()}, u.dtype);
    expect_same_shape(op, "e", e, "u", u);
    expect_shape(op, "kl", kl, {u.rows()}, u.dtype);
}

}  // namespace

void coupling_forward(View x, View st, View y, View log_det) {
    check_coupling("coupling", x, st, log_det);
    expect_same_shape("coupling", "x", x, "y", y);
    for_latent("coupling", x, [&]<class A>(A) {
        for_each_row(x.rows(), Coupling<A>{x.as<A>(), st.as<A>(), y.as<A>(), log_det.as<A>(), int(x.columns())});
    });
}

void coupling_backward(View dy, View dlog_det, View x, View st, Grad dx, Grad dst) {
    check_coupling("coupling backward", x, st, dlog_det);
    expect_same_shape("coupling backward", "dy", dy, "x", x);
    expect_grad("coupling backward", "dx", dx, x);
    expect_grad("coupling backward", "dst", dst, st);
    if (!dx && !dst) return;
    for_latent("coupling backward", x, [&]<class A>(A) {
        for_each_row(x.rows(), CouplingBackward<A>{dy.as<A>(), dlog_det.as<A>(), x.as<A>(), st.as<A>(), dx.view.as<A>(),
                                                   dst.view.as<A>(), dx.add, dst.add, int(x.columns())});
    });
}

void log_det_forward(View w, View log_det, View left, View inverse) {
    expect_shape("log_det", "w", w, {w.rows(), w.rows()}, w.dtype);
    expect_same_shape("log_det", "w", w, "left", left);
    expect_same_shape("log_det", "w", w, "inverse", inverse);
    expect_shape("log_det", "log_det", log_det, {1}, w.dtype);
    for_latent("log_det", w, [&]<class A>(A) {
        for_each_row(1, LogDet<A>{w.as<A>(), left.as<A>(), inverse.as<A>(), log_det.as<A>(), int(w.rows())});
    });
}

void log_det_backward(View dlog_det, View inverse, Grad dw) {
    expect_shape("log_det backward", "dlog_det", dlog_det, {1}, inverse.dtype);
    expect_grad("log_det backward", "dw", dw, inverse);
    if (!dw) return;
    for_latent("log_det backward", inverse, [&]<class A>(A) {
        store_points(inverse.count(), dw.view.as<A>(), dw.add,
                     LogDetBackward<A>{dlog_det.as<A>(), inverse.as<A>(), int(inverse.rows())});
    });
}

void flow_kl_forward(View x, View e, View u, View log_dets, View log_det, View kl) {
    check_kl("flow_kl", x, e, u, kl);
    expect_same_shape("flow_kl", "log_dets", log_dets, "kl", kl);
    expect_shape("flow_kl", "log_det", log_det, {1}, u.dtype);
    for_latent("flow_kl", u, [&]<class A>(A) {
        for_each_row(u.rows(), FlowKl<A>{x.as<A>(), e.as<A>(), u.as<A>(), log_dets.as<A>(), log_det.as<A>(), kl.as<A>(),
                                         int(u.columns())});
    });
}

void flow_kl_backward(View dkl, View x, View u, Grad dx, Grad du, Grad dlog_dets, Grad dlog_det) {
    check_kl("flow_kl backward", x, u, u, dkl);
    expect_grad("flow_kl backward", "dx", dx, x);
    expect_grad("flow_kl backward", "du", du, u);
    expect_grad("flow_kl backward", "dlog_dets", dlog_dets, dkl);
    if (dlog_det) expect_shape("flow_kl backward", "dlog_det", dlog_det.view, {1}, u.dtype);
    for_latent("flow_kl backward", u, [&]<class A>(A) {
        for_each_row_and_sums(u.rows(), 1,
                              FlowKlBackward<A>{dkl.as<A>(), x.as<A>(), u.as<A>(), dx.view.as<A>(), du.view.as<A>(),
                                                dlog_dets.view.as<A>(), dx.add, du.add, dlog_dets.add,
                                                int(u.columns())},
                              ColumnSum<A, MinusTerm<A>>{dlog_det.view.as<A>(), dlog_det.add, {dkl.as<A>()}});
    });
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Ops of a normalising flow, an invertible map of latents. coupling is an affine coupling layer with the log of its
// Jacobian determinant. log_det is log |det w| for the matrix w of a linear layer. actnorm scales and shifts columns.
// lu_matrix makes the matrix of a linear layer from its LU factors. flow_kl estimates the KL divergence from a normal
// distribution to the prior that the flow defines. The tensors may have any type but bf16.
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Returns s = 2 tanh(r / 2), the log of a factor in the coupling layer; s is between -2 and 2. ds/dr = 1 - (s/2)^2.
template <class A>
HD A bounded(A r) {
    return A(2) * tanh_of(A(0.5) * r);
}

// A row x (Z) holds two parts, `a` and then b; b is the last Z/2 numbers (rounded down). A row st holds r, then t, each
// as long as b. With s = bounded(r), the row y holds `a`, then b exp(s) + t, and log_det is the sum of s.
template <class A>
HD void coupling_row(Lanes lanes, const A* x, const A* st, A* y, A* log_det, int Z) {
    const int half = Z / 2, from = Z - half;
    const A *r = st, *t = r + half;
    store(lanes, from, y, false, [&](int i) { return x[i]; });
    store(lanes, half, y + from, false, [&](int i) { return x[from + i] * exp_of(bounded(r[i])) + t[i]; });
    const A all = sum(lanes, half, [&](int i) { return bounded(r[i]); });
    if (first(lanes)) *log_det = all;
}
template <class A>
HD void coupling_row_grad(Lanes lanes, const A* dy, A dlog_det, const A* x, const A* st, A* dx, bool add, A* dst,
                          bool add_st, int Z) {
    const int half = Z / 2, from = Z - half;
    const A* r = st;
    if (dx) {
        store(lanes, from, dx, add, [&](int i) { return dy[i]; });
        store(lanes, half, dx + from, add, [&](int i) { return dy[from + i] * exp_of(bounded(r[i])); });
    }
    if (!dst) return;
    store(lanes, half, dst, add_st, [&](int i) {
        const A s = bounded(r[i]), h = A(0.5) * s, ds = dy[from + i] * x[from + i] * exp_of(s) + dlog_det;
        return ds * (A(1) - h * h);
    });
    store(lanes, half, dst + half, add_st, [&](int i) { return dy[from + i]; });
}

template <class A>
HD auto size_of_number(A x) {
    return real_of(x) < 0 ? -real_of(x) : real_of(x);
}
template <class A>
HD A log_of_size(A x) {
    return log_of(real_of(x) < 0 ? -x : x);
}
// Inverts w (Z,Z) by Gauss-Jordan elimination with partial pivoting: `left` begins as w and becomes the identity,
// `inverse` becomes the inverse of w, and log_det is log |det w|.
template <class A>
HD void log_det_of(Lanes lanes, const A* w, A* left, A* inverse, A* log_det, int Z) {
    each(lanes, Z * Z, [&](int i) {
        left[i] = w[i];
        inverse[i] = i / Z == i % Z ? A(1) : A(0);
    });
    A logs(0);
    for (int k = 0; k < Z; k++) {
        meet(lanes);
        int pivot = k;
        for (int row = k + 1; row < Z; row++)
            if (size_of_number(left[row * Z + k]) > size_of_number(left[pivot * Z + k])) pivot = row;
        const A by = left[pivot * Z + k];
        logs = logs + log_of_size(by);
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
    if (first(lanes)) *log_det = logs;
}
template <class A>
HD A log_det_grad(A dlog_det, const A* inverse, int Z, std::int64_t i) {
    return dlog_det * inverse[(i % Z) * Z + i / Z];
}

// log_det = the sum of log |s_i| over n numbers s_i, which are `step` numbers apart.
template <class A>
HD void sum_of_logs(Lanes lanes, const A* s, std::int64_t step, A* log_det, int n) {
    const A all = sum(lanes, n, [&](int i) { return log_of_size(s[i * step]); });
    if (first(lanes)) *log_det = all;
}

template <class A>
HD A actnorm_point(A x, const A* s, const A* b, int Z, std::int64_t i) {
    return s[i % Z] * x + b[i % Z];
}
// Computes row n of dx. A number of ds is a sum of rows + 1 terms (ScaleTerm): one for each row of x, and one for the
// gradient of log_det. This function is therefore also called with n = rows, and then does nothing.
template <class A>
HD void actnorm_row_grad(Lanes lanes, const A* dy, const A* s, A* dx, bool add, std::int64_t n, std::int64_t rows,
                         int Z) {
    if (dx && n < rows) store(lanes, Z, dx, add, [&](int i) { return dy[i] * s[i]; });
}
template <class A>
struct ScaleTerm {
    const A *dy, *x, *dlog_det, *s;
    std::int64_t rows;
    int Z;
    HD A operator()(std::int64_t n, int i) const { return n < rows ? dy[n * Z + i] * x[n * Z + i] : *dlog_det / s[i]; }
};
template <class A>
struct ShiftTerm {
    const A* dy;
    std::int64_t rows;
    int Z;
    HD A operator()(std::int64_t n, int i) const { return n < rows ? dy[n * Z + i] : A(0); }
};

// Returns an entry of `order` as an index of a row of the product L (U + diag(s)). If the entry is not such an index,
// because the file that `order` was read from is damaged, returns 0, so that no kernel reads outside the matrix.
template <class A>
HD int row_of_product(A entry, int Z) {
    const auto r = real_of(entry);
    return r >= 0 && r < Z ? int(r) : 0;
}

// Computes row i of w = P L (U + diag(s)). This row is row order[i] of the product L (U + diag(s)); `of_order` is
// order[i]. lu (Z,Z) holds L below its diagonal, s on the diagonal, and U above it.
template <class A>
HD void lu_row(Lanes lanes, const A* lu, A of_order, A* w, int Z) {
    const int r = row_of_product(of_order, Z);
    store(lanes, Z, w, false, [&](int j) {
        A all = j < r ? A(0) : lu[r * Z + j];
        for (int k = 0; k < r && k <= j; k++) all = all + lu[r * Z + k] * lu[k * Z + j];
        return all;
    });
}
// Computes row r of dlu, where r is `row`. lu holds L below its diagonal, s on the diagonal, and U above it. G is dw
// with its rows in the order of the product L (U + diag(s)): row order[i] of G is row i of dw.
//   dL = G (U + diag(s))^T below the diagonal,   d(U + diag(s)) = L^T G on the diagonal and above
// The diagonal also receives the gradient of log_det, dlog_det / s.
template <class A>
HD void lu_row_grad(Lanes lanes, std::int64_t row, const A* dw, A dlog_det, const A* lu, const A* order, A* dlu,
                    bool add, int Z) {
    const int r = int(row);
    int i_of_r = 0;
    while (i_of_r + 1 < Z && row_of_product(order[i_of_r], Z) != r) i_of_r++;
    store(lanes, Z, dlu, add, [&](int c) {
        A all(0);
        if (c < r) {
            for (int j = c; j < Z; j++) all = all + dw[i_of_r * Z + j] * lu[c * Z + j];
            return all;
        }
        for (int i = 0; i < Z; i++) {
            const int below = row_of_product(order[i], Z);
            if (below > r) all = all + lu[below * Z + r] * dw[i * Z + c];
        }
        all = all + dw[i_of_r * Z + c];
        return c == r ? all + dlog_det / lu[r * Z + r] : all;
    });
}

// A row x (2Z) holds the means mu, then the log variances l. e (Z) is the noise with which gaussian_sample has drawn
// z, and u (Z) is the result of the flow for z. The formula of kl is in ops.h, at flow_kl_forward.
template <class A>
HD void flow_kl_row(Lanes lanes, const A* x, const A* e, const A* u, A log_dets, A log_det, A* kl, int Z) {
    const A all =
        sum(lanes, Z, [&](int i) { return A(0.5) * (u[i] * u[i] - e[i] * e[i] - clamped_log_variance(x[Z + i])); });
    if (first(lanes)) *kl = all - log_dets - log_det;
}
template <class A>
HD void flow_kl_row_grad(Lanes lanes, A dkl, const A* x, const A* u, A* dx, bool add, A* du, bool add_u, A* dlog_dets,
                         bool add_dets, int Z) {
    const A* l = x + Z;
    if (dx) {
        store(lanes, Z, dx, add, [&](int) { return A(0); });
        store(lanes, Z, dx + Z, add, [&](int i) { return inside_clamp(l[i]) * A(-0.5) * dkl; });
    }
    if (du) store(lanes, Z, du, add_u, [&](int i) { return dkl * u[i]; });
    if (dlog_dets && first(lanes)) put(*dlog_dets, -dkl, add_dets);
}
template <class A>
struct MinusTerm {
    const A* dkl;
    HD A operator()(std::int64_t n, int) const { return -dkl[n]; }
};

void check_st(const View& x, const View& st) {
    expect_shape("coupling", "st", st, {x.rows(), x.columns() / 2 * 2}, x.dtype);
}

}  // namespace

void coupling_forward(View x, View st, View y, View log_det) {
    check_st(x, st);
    for_latent_rows(x, [&]<class A>(A) { return row_call<coupling_row<A>>(x, st, y, log_det, x.columns()); });
}

void coupling_backward(View dy, View dlog_det, View x, View st, Grad dx, Grad dst) {
    check_st(x, st);
    expect_grad("coupling", "dst", dst, st);
    if (!dx && !dst) return;
    for_latent_rows(x, [&]<class A>(A) {
        return row_call<coupling_row_grad<A>>(dy, dlog_det, x, st, dx, dst, x.columns());
    });
}

void log_det_forward(View w, View log_det, View left, View inverse) {
    for_latent(w, [&]<class A>(A) { for_each_row(1, row_call<log_det_of<A>>(w, left, inverse, log_det, w.rows())); });
}

void log_det_backward(View dlog_det, View inverse, Grad dw) {
    for_latent(inverse, [&]<class A>(A) {
        store_points<A, log_det_grad<A>>(dw, one<A>(dlog_det), inverse.as<A>(), int(inverse.rows()), Number());
    });
}

void actnorm_forward(View x, View s, View b, View y, View log_det) {
    for_latent(x, [&]<class A>(A) {
        const int Z = int(x.columns());
        store_points<A, actnorm_point<A>>({y}, x, s.as<A>(), b.as<A>(), Z, Number());
        for_each_row(1, row_call<sum_of_logs<A>>(s, std::int64_t(1), log_det, Z));
    });
}

void actnorm_backward(View dy, View dlog_det, View x, View s, Grad dx, Grad ds, Grad db) {
    for_latent(x, [&]<class A>(A) {
        const std::int64_t rows = x.rows();
        const int Z = int(x.columns());
        const ScaleTerm<A> scale{dy.as<A>(), x.as<A>(), dlog_det.as<A>(), s.as<A>(), rows, Z};
        for_each_row_and_sums(rows + 1, Z, row_call<actnorm_row_grad<A>>(dy, s.as<A>(), dx, Number(), rows, Z),
                              ColumnSum(ds, scale), ColumnSum(db, ShiftTerm<A>{scale.dy, rows, Z}));
    });
}

void lu_matrix_forward(View lu, View order, View w, View log_det) {
    for_latent(lu, [&]<class A>(A) {
        const int Z = int(lu.rows());
        for_each_row(Z, row_call<lu_row<A>>(lu.as<A>(), order, w, Z));
        for_each_row(1, row_call<sum_of_logs<A>>(lu, std::int64_t(Z) + 1, log_det, Z));
    });
}

void lu_matrix_backward(View dw, View dlog_det, View lu, View order, Grad dlu) {
    if (!dlu) return;
    for_latent_rows(lu, [&]<class A>(A) {
        return row_call<lu_row_grad<A>>(Number(), dw.as<A>(), one<A>(dlog_det), lu.as<A>(), order.as<A>(), dlu,
                                        lu.rows());
    });
}

void flow_kl_forward(View x, View e, View u, View log_dets, View log_det, View kl) {
    for_latent_rows(u, [&]<class A>(A) {
        return row_call<flow_kl_row<A>>(x, e, u, log_dets, one<A>(log_det), kl, u.columns());
    });
}

void flow_kl_backward(View dkl, View x, View u, Grad dx, Grad du, Grad dlog_dets, Grad dlog_det) {
    for_latent(u, [&]<class A>(A) {
        for_each_row_and_sums(u.rows(), 1, row_call<flow_kl_row_grad<A>>(dkl, x, u, dx, du, dlog_dets, u.columns()),
                              ColumnSum(dlog_det, MinusTerm<A>{dkl.as<A>()}));
    });
}

}  // namespace masquerade::DEVICE

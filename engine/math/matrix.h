// SPDX-License-Identifier: MIT
// The definitions of the matrix ops: plain loops that fix the order of each sum, for any arithmetic type A. Tensors of
// double (f64) and complex numbers (c128) are computed by these loops, and tests compare all fast implementations with
// them. Complex numbers are not conjugated: tests compute derivatives as Im f(x + i h) / h, which needs analytic
// functions. A gradient whose pointer is null is not computed. If `add` is true, results are added to the old values.
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

// A matrix whose element (i, j) is at data[i * row + j * column].
template <class A>
struct Strided {
    A* data;
    std::int64_t row, column;
    A& operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};

// C(M,N) = A(M,K) B(K,N) + bias(N);  bias may be null
template <class A>
void product_reference(std::int64_t M, std::int64_t N, std::int64_t K, const Strided<const A>& a,
                       const Strided<const A>& b, const A* bias, const Strided<A>& c, bool add) {
    for (std::int64_t m = 0; m < M; m++)
        for (std::int64_t n = 0; n < N; n++) {
            A s(0);
            for (std::int64_t k = 0; k < K; k++) s += a(m, k) * b(k, n);
            put(c(m, n), bias ? s + bias[n] : s, add);
        }
}

// db(O) = column sums of dy(M,O)
template <class A>
void column_sums_reference(std::int64_t M, std::int64_t O, const A* dy, A* db, bool add) {
    for (std::int64_t o = 0; o < O; o++) {
        A s(0);
        for (std::int64_t m = 0; m < M; m++) s += dy[m * O + o];
        put(db[o], s, add);
    }
}

// Returns the logit of token v: h . w_v + b_v;  b may be null.
template <class A>
A logit_reference(std::int64_t C, const A* h, const A* w, const A* b, std::int64_t v) {
    A s(0);
    for (std::int64_t c = 0; c < C; c++) s += h[c] * w[v * C + c];
    return b ? s + b[v] : s;
}

// Label smoothing e: the label distribution q is 1 - e + e/V for the target and e/V for every other token.
//                                                                          Szegedy et al. 2016, section 7
template <class A>
struct SmoothLabel {
    A target, other;
    SmoothLabel(double e, std::int64_t V) : target(1 - e + e / double(V)), other(e / double(V)) {}
    bool smooth() const { return other != A(0); }
};

// Computes lse and loss of one row h(C):
//     lse = log sum_v exp(logit_v),  loss = lse - sum_v q_v logit_v,  logit_v = h . w_v + b_v;  b may be null
// `label` gives the label distribution q. The largest logit is subtracted before exp to avoid overflow.
template <class A>
void cross_entropy_reference(std::int64_t C, std::int64_t V, const A* h, const A* w, const A* b, int target,
                             const SmoothLabel<A>& label, A* loss, A* lse) {
    A top = logit_reference(C, h, w, b, 0);
    for (std::int64_t v = 1; v < V; v++) {
        A x = logit_reference(C, h, w, b, v);
        if (real_of(x) > real_of(top)) top = x;
    }
    A s(0), sum(0);
    for (std::int64_t v = 0; v < V; v++) {
        A x = logit_reference(C, h, w, b, v);
        s += exp_of(x - top);
        sum += x;
    }
    *lse = top + log_of(s);
    *loss = *lse - (label.target - label.other) * logit_reference(C, h, w, b, target);
    if (label.smooth()) *loss -= label.other * sum;
}

// Adds the gradients of weight * loss for one row to dh, dw and db. loss, lse and the label distribution q are defined
// at cross_entropy_reference(). If the weight is 0, nothing is added.
//     dlogit_v = (exp(logit_v - lse) - q_v) weight
//     dh(C) += sum_v dlogit_v w_v,   dw(V,C) += dlogit_v h,   db(V) += dlogit_v
template <class A>
void cross_entropy_gradient_reference(std::int64_t C, std::int64_t V, A weight, const A* h, const A* w, const A* b,
                                      int target, const SmoothLabel<A>& label, A lse, A* dh, A* dw, A* db) {
    if (weight == A(0)) return;
    for (std::int64_t v = 0; v < V; v++) {
        A p = exp_of(logit_reference(C, h, w, b, v) - lse);
        A dlogit = (p - (v == target ? label.target : label.other)) * weight;
        for (std::int64_t c = 0; dh && c < C; c++) dh[c] += dlogit * w[v * C + c];
        for (std::int64_t c = 0; dw && c < C; c++) dw[v * C + c] += dlogit * h[c];
        if (db) db[v] += dlogit;
    }
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The definition of attention, for one query and one head. Tests compare the fast implementations with it.
//
// The argument `visit` is a function: visit(f) calls f(key) for every key that the query sees (ops/visible.h), always
// in the same order. key.k and key.v (D) are the key and the value. key.keep is the dropout factor of the probability:
// 0 or 1 / (1 - rate), or 1 without dropout. The backward adds gradients to key.dk and key.dv. The number type A may be
// complex, because tests compute derivatives by the complex step, Im f(x + i h) / h with a tiny h. Complex numbers are
// therefore never conjugated, and comparisons use only their real parts.
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

template <class A>
A attention_score(const A* q, const A* k, int D) {
    A s(0);
    for (int d = 0; d < D; d++) s += q[d] * k[d];
    return s * A(1 / std::sqrt(double(D)));
}

// y = sum_j p_j keep_j v_j,  p_j = exp(s_j - lse),  s_j = q.k_j / sqrt(D),  lse = log sum_j exp s_j.
// keep_j is the dropout factor key.keep. If the query sees no key, y = 0 and lse = minus infinity.
//                                                                  Vaswani et al. 2017, equation 1
template <class A, class Visit>
void attention_row(const A* q, int D, Visit visit, A* y, A* lse) {
    double top = -INFINITY;
    visit([&](const auto& key) {
        double s = real_of(attention_score(q, key.k, D));
        top = s > top || s != s ? s : top;
    });
    for (int d = 0; d < D; d++) y[d] = A(0);
    A total(0);
    bool sees = false;
    visit([&](const auto& key) {
        A p = exp_of(attention_score(q, key.k, D) - A(top));
        total += p;
        for (int d = 0; d < D; d++) y[d] += p * key.keep * key.v[d];
        sees = true;
    });
    for (int d = 0; d < D && sees; d++) y[d] /= total;
    *lse = sees ? A(top) + log_of(total) : A(-INFINITY);
}

//     dv_j = p_j keep_j dy,  ds_j = p_j (keep_j dy.v_j - dy.y) / sqrt(D),  dq = sum_j ds_j k_j,  dk_j = ds_j q
// p_j is the probability of key j, computed again from lse. ds_j is the gradient of q.k_j. keep_j is the dropout factor
// key.keep (1 without dropout). The gradients are added to the values in dq, key.dk and key.dv; each of these three
// pointers may be null.
template <class A, class Visit>
void attention_row_grad(const A* dy, const A* q, const A* y, A lse, int D, Visit visit, A* dq) {
    A delta(0);
    for (int d = 0; d < D; d++) delta += dy[d] * y[d];
    visit([&](const auto& key) {
        A p = exp_of(attention_score(q, key.k, D) - lse), dp(0);
        for (int d = 0; d < D; d++) dp += dy[d] * key.v[d];
        A ds = p * (dp * key.keep - delta) * A(1 / std::sqrt(double(D)));
        for (int d = 0; d < D; d++) {
            if (dq) dq[d] += ds * key.k[d];
            if (key.dk) key.dk[d] += ds * q[d];
            if (key.dv) key.dv[d] += p * key.keep * dy[d];
        }
    });
}

}  // namespace masquerade

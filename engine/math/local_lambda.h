// SPDX-License-Identifier: MIT
// Attention with a positional lambda: for each query row n, a matrix lambda_n (D,D) is made of the values v of nearby
// keys, and applied to the query q_n.                          Bello 2021, equation 2, restricted to a window
//
//     y_n = sum_o (e_o . q_n) v_(n+o) = lambda_n^T q_n,    lambda_n = sum_o e_o v_(n+o)^T,    |o| <= reach
//
// e_o is a learned vector for the relative distance o. There are N query rows, H heads and C = H D columns. In this
// file, `row` is n H + h for head h of query row n. The values come from up to four tensors v[s]. For each n, `keys`
// has an entry for each of the W = 2 reach + 1 distances: 4 r + s if the value at this distance is row r of v[s], or -1
// if query row n sees no key at this distance.
#pragma once
#include <array>

#include "engine/math/lanes.h"

namespace masquerade {

template <class S, class A>
struct LocalRows {
    const int* keys;  // (N,W): the key at each distance from each query row, as described at the top of this file
    int W, H, D;
    const A* q;           // (N,C): the query rows
    const S* e;           // (W,C): a learned vector for each distance and head
    std::array<S*, 4> v;  // values of up to four key sources, (rows of the source, C) each
    HD std::int64_t C() const { return std::int64_t(H) * D; }
    // Returns the value (D) of the key at distance o - reach from the row, 0 <= o < W. Returns null if the row sees no
    // key at this distance.
    HD const S* value(std::int64_t row, int o) const {
        const int key = keys[row / H * W + o];
        return key < 0 ? nullptr : v[key & 3] + (key >> 2) * C() + row % H * D;
    }
    // Returns the learned vector e (D) for distance o - reach.
    HD const S* distance(std::int64_t row, int o) const { return e + o * C() + row % H * D; }
    // Sets weights_o = e_o . q for each o. If the row sees no key at distance o - reach, weights_o is 0. e_o is the
    // learned vector for this distance.
    template <class Lanes>
    HD void weigh(Lanes lanes, std::int64_t row, A* weights) const {
        for (int o = 0; o < W; o++) {
            const S* at = distance(row, o);
            const A w =
                keys[row / H * W + o] < 0 ? A(0) : sum(lanes, D, [&](int i) { return A(at[i]) * q[row * D + i]; });
            if (first(lanes)) weights[o] = w;
        }
        meet(lanes);
    }
    // Computes y = sum_o weights_o v_o, where v_o is the value of the key at distance o - reach from the row.
    template <class Lanes>
    HD void read(Lanes lanes, std::int64_t row, const A* weights, S* y) const {
        store(lanes, D, y, false, [&](int i) {
            A s(0);
            for (int o = 0; o < W; o++)
                if (const S* at = value(row, o)) s += weights[o] * A(at[i]);
            return s;
        });
    }
    // Computes asked_o = dy . v_o, the gradient of weights_o; 0 if the row sees no key at distance o - reach. If dq is
    // not null, also computes dq = sum_o asked_o e_o. v_o is the value, and e_o the learned vector, for this distance.
    // From `asked`, the caller computes de_o, the sum of asked_o q over all query rows.
    template <class Lanes>
    HD void read_grad(Lanes lanes, std::int64_t row, const S* dy, A* asked, A* dq, bool add) const {
        for (int o = 0; o < W; o++) {
            const S* at = value(row, o);
            const A t = at ? sum(lanes, D, [&](int i) { return A(dy[i]) * A(at[i]); }) : A(0);
            if (first(lanes)) asked[o] = t;
        }
        meet(lanes);
        if (!dq) return;
        store(lanes, D, dq, add, [&](int i) {
            A s(0);
            for (int o = 0; o < W; o++) s += asked[o] * A(distance(row, o)[i]);
            return s;
        });
    }
};

}  // namespace masquerade

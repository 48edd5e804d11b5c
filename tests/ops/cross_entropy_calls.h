// SPDX-License-Identifier: MIT
// The tensors and the calls of one cross-entropy, for the tests of this op.
#pragma once
#include <cmath>
#include <vector>

#include "engine/ops/table.h"
#include "tests/ops/values.h"

namespace masquerade {

// Every third row has the weight 0, and the other weights are below 1. dtotal is negative.
struct CrossEntropy {
    DType a;
    Values h, w, b, weights, loss, lse, total, h1, w1, b1, dtotal, dh, dw, db;
    std::vector<int> targets;
    double smoothing = 0;
    CrossEntropy(DType type, std::int64_t N, std::int64_t C, std::int64_t V, double fill = NAN)
        : a(arithmetic_of(type)),
          h(Values::random(type, {N, C}, 1)),
          w(Values::random(type, {V, C}, 2)),
          b(Values::random(a, {V}, 3, 4)),
          weights(Values::random(a, {N}, 4)),
          loss(a, {N}, NAN),
          lse(a, {N}, NAN),
          total(a, {1}, NAN),
          h1(type, {N, C}, NAN),
          w1(a, {V, C}, NAN),
          b1(a, {V}, NAN),
          dtotal(a, {1}, -0.75),
          dh(type, {N, C}, fill),
          dw(a, {V, C}, fill),
          db(a, {V}, fill) {
        for (std::int64_t n = 0; n < N; n++) targets.push_back(int(n * 7919 % V));
        for (std::int64_t n = 1; n < N; n += 3) weights.set(n, 0);
    }
    Ints ints() const { return {targets.data(), std::int64_t(targets.size())}; }
    // Runs the forward, which computes the requested ones of the gradients.
    void forward(bool for_h = true, bool for_w = true, bool for_b = true) {
        cpu::cross_entropy_forward(h.view("head"), w.view("words"), b.view(), ints(), weights.view(), smoothing,
                                   loss.view(), lse.view(), total.view(), for_h ? h1.view() : View{},
                                   for_w ? w1.view() : View{}, for_b ? b1.view() : View{});
    }
    void losses_alone() {
        cpu::cross_entropy_forward(h.view(), w.view(), b.view(), ints(), {}, smoothing, loss.view(), lse.view(), {}, {},
                                   {}, {});
    }
    void backward(bool add = false) {
        cpu::cross_entropy_backward(dtotal.view(), h1.view(), w1.view(), b1.view(), dh.grad(add), dw.grad(add),
                                    db.grad(add));
    }
};

inline int differences(const Values& a, const Values& b) {
    int different = 0;
    for (std::int64_t i = 0; i < a.count(); i++) different += !(a[i] == b[i]);
    return different;
}

}  // namespace masquerade

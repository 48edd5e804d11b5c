// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>

#include "tests/ops/cross_entropy_calls.h"

using namespace masquerade;

// Label smoothing is linear in the labels. The smoothed loss is (1 - e) times the loss of the target, plus e / V times
// the loss of every word as the target, each without smoothing.
TEST_CASE("cross_entropy: smoothed, it is the mean over targets drawn by the smoothed labels") {
    constexpr double e = 0.3;
    constexpr int N = 6, C = 5, V = 40;
    for (DType type : {DType::f64, DType::f32, DType::bf16}) {
        CAPTURE(name_of(type));
        CrossEntropy smooth(type, N, C, V), plain(type, N, C, V);
        Values loss(DType::f64, {N}), total(DType::f64, {1}), h1(DType::f64, {N, C}), w1(DType::f64, {V, C}),
            b1(DType::f64, {V});
        auto add = [](const Values& x, double share, Values& to) {
            for (std::int64_t i = 0; i < x.count(); i++) to.set(i, to[i] + share * x[i]);
        };
        for (int v = -1; v < V; v++) {  // -1: the targets themselves
            if (v >= 0) plain.targets.assign(N, v);
            plain.forward();
            const double share = v < 0 ? 1 - e : e / V;
            add(plain.loss, share, loss), add(plain.total, share, total);
            add(plain.h1, share, h1), add(plain.w1, share, w1), add(plain.b1, share, b1);
        }
        smooth.smoothing = e;
        smooth.forward();
        const double near = type == DType::f64 ? 1e-14 : 1e-6, rounded = type == DType::bf16 ? 8e-3 : near;
        CHECK(difference(smooth.lse, plain.lse) == 0);
        CHECK(difference(smooth.loss, loss) <= near);
        CHECK(difference(smooth.total, total) <= near);
        CHECK(difference(smooth.h1, h1) <= rounded);
        CHECK(difference(smooth.w1, w1) <= rounded);
        CHECK(difference(smooth.b1, b1) <= near);
    }
}

// If the sum of the logits has no weight, it must not be computed, because 0 times infinity is NaN.
TEST_CASE("cross_entropy: a forbidden word makes a smoothed loss infinite, its gradients stay finite") {
    for (DType type : {DType::f32, DType::bf16, DType::f64}) {
        CrossEntropy f(type, 3, 4, 300);
        f.b.set(7, -INFINITY);
        f.weights.set(0, 0.5);
        f.forward();
        CHECK(std::isfinite(f.loss[0]));
        CHECK(f.b1[7] == 0);
        f.smoothing = 0.25;
        f.forward();
        CHECK(f.loss[0] == INFINITY);
        double pull = 0;
        for (int n = 0; n < 3; n++) pull -= f.weights[n] * 0.25 / 300;
        CHECK(f.b1[7] == doctest::Approx(pull));
        int finite = 0;
        for (const Values* x : {&f.h1, &f.w1, &f.b1})
            for (std::int64_t i = 0; i < x->count(); i++) finite += std::isfinite((*x)[i]);
        CHECK(finite == 3 * 4 + 300 * 4 + 300);
    }
}

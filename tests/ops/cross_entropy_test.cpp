// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"
#include "tests/ops/cross_entropy_calls.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace masquerade;

TEST_CASE("cross_entropy: the definition's gradients are those of the complex step") {
    for (double smoothing : {0.0, 0.3}) {
        CrossEntropy exact(DType::f64, 5, 4, 7), step(DType::c128, 5, 4, 7);
        exact.smoothing = step.smoothing = smoothing;
        exact.forward(), exact.backward();
        auto f = [&] {
            step.forward(false, false, false);
            return dot(step.dtotal, step.total);
        };
        CHECK(difference(exact.dh, complex_step(step.h, f)) <= 1e-12);
        CHECK(difference(exact.dw, complex_step(step.w, f)) <= 1e-12);
        CHECK(difference(exact.db, complex_step(step.b, f)) <= 1e-12);
    }
}

TEST_CASE("cross_entropy: float and bf16 agree with double, stored and added, across blocks") {
    const std::int64_t sizes[][3] = {{1, 1, 1},     {2, 33, 31},  {65, 16, 129}, {33, 24, 2700},
                                     {1000, 5, 40}, {641, 7, 17}, {1300, 9, 20}, {0, 6, 7}};
    for (const auto& size : sizes)
        for (DType type : {DType::f32, DType::bf16})
            for (auto [add, smoothing] : {std::pair{false, 0.0}, {true, 0.0}, {false, 0.1}}) {
                std::string what = text(size[0], " x ", size[1], " x ", size[2], " ", name_of(type), add ? " add" : "",
                                        smoothing > 0 ? " smoothed" : "");
                CAPTURE(what);
                double near = type == DType::bf16 ? 8e-3 : 4e-6, fill = add ? 0.5 : NAN;
                CrossEntropy exact(DType::f64, size[0], size[1], size[2], fill);
                CrossEntropy fast(type, size[0], size[1], size[2], fill);
                exact.smoothing = fast.smoothing = smoothing;
                exact.forward(), exact.backward(add);
                fast.forward(), fast.backward(add);
                CHECK(difference(fast.loss, exact.loss) <= 1e-6);
                CHECK(difference(fast.lse, exact.lse) <= 1e-6);
                CHECK(std::fabs(fast.total[0] - exact.total[0]) <= 1e-6 * (1 + double(size[0])));
                CHECK(difference(fast.dh, exact.dh) <= near);
                CHECK(difference(fast.dw, exact.dw) <= near);
                CHECK(difference(fast.db, exact.db) <= 4e-6);
            }
}

TEST_CASE("cross_entropy: every bit is the same on any number of threads, a row's alone or among others") {
    int before = threads();
    for (auto [type, smoothing] : {std::pair{DType::f32, 0.0}, {DType::bf16, 0.0}, {DType::bf16, 0.1}}) {
        CrossEntropy one(type, 1000, 40, 1500), many(type, 1000, 40, 1500);
        one.smoothing = many.smoothing = smoothing;
        set_threads(1);
        one.forward(), one.backward();
        for (int count : {2, 4, 8}) {
            set_threads(count);
            many.forward(), many.backward();
            CHECK(many.loss.bytes == one.loss.bytes);
            CHECK(many.lse.bytes == one.lse.bytes);
            CHECK(many.total.bytes == one.total.bytes);
            CHECK(many.dh.bytes == one.dh.bytes);
            CHECK(many.dw.bytes == one.dw.bytes);
            CHECK(many.db.bytes == one.db.bytes);
        }
        for (std::int64_t row : {0, 17, 639, 640, 959, 960, 999}) {
            CrossEntropy alone(type, 1, 40, 1500);
            alone.smoothing = smoothing;
            for (int c = 0; c < 40; c++) alone.h.set(c, one.h.get(row * 40 + c));
            alone.targets[0] = one.targets[std::size_t(row)];
            alone.weights.set(0, one.weights.get(row));
            alone.forward(), alone.backward();
            CHECK(alone.loss[0] == one.loss[row]);
            CHECK(alone.lse[0] == one.lse[row]);
            int different = 0;
            for (int c = 0; c < 40; c++) different += !(alone.dh[c] == one.dh[row * 40 + c]);
            CHECK(different == 0);
        }
    }
    set_threads(before);
}

TEST_CASE("cross_entropy: the total is the weighted sum of the losses, w1 one product over all rows") {
    // The rows of w are unit vectors, so h1 contains the gradients of the logits.
    for (std::int64_t N : {360, 700, 1000, 2048}) {
        CrossEntropy f(DType::f32, N, 40, 40);
        for (int i = 0; i < 40 * 40; i++) f.w.set(i, i % 41 == 0);
        f.forward();
        Values total(DType::f32, {1}), w1(DType::f32, {40, 40}, NAN);
        cpu::weighted_sum_forward(f.loss.view(), f.weights.view(), total.view());
        CHECK(total.bytes == f.total.bytes);
        gemm(40, 40, N, transposed(factor(f.h1.view())), factor(f.h.view()), product(w1.view()));
        CHECK(differences(w1, f.w1) == 0);
    }
}

TEST_CASE("cross_entropy: whatever is not asked for, the rest has the same bits") {
    for (DType type : {DType::f32, DType::bf16, DType::f64}) {
        CrossEntropy all(type, 700, 9, 1400);
        all.forward();
        for (int wanted = 0; wanted < 7; wanted++) {
            CAPTURE(wanted);
            const bool for_h = wanted & 1, for_w = wanted & 2, for_b = wanted & 4;
            CrossEntropy some(type, 700, 9, 1400);
            some.forward(for_h, for_w, for_b);
            CHECK(some.loss.bytes == all.loss.bytes);
            CHECK(some.lse.bytes == all.lse.bytes);
            CHECK(some.total.bytes == all.total.bytes);
            CHECK((some.h1.bytes == all.h1.bytes) == for_h);
            CHECK((some.w1.bytes == all.w1.bytes) == for_w);
            CHECK((some.b1.bytes == all.b1.bytes) == for_b);
        }
        CrossEntropy losses(type, 700, 9, 1400);
        losses.losses_alone();
        CHECK(losses.loss.bytes == all.loss.bytes);
        CHECK(losses.lse.bytes == all.lse.bytes);
    }
}

TEST_CASE("cross_entropy: a row of no weight adds exactly nothing, though its loss be infinite") {
    for (auto [type, smoothing] : {std::pair{DType::f32, 0.0},
                                   {DType::bf16, 0.0},
                                   {DType::f64, 0.0},
                                   {DType::f32, 0.1},
                                   {DType::bf16, 0.1},
                                   {DType::f64, 0.1}}) {
        CrossEntropy with(type, 6, 8, 50), without(type, 5, 8, 50);
        with.smoothing = without.smoothing = smoothing;
        double huge = type == DType::f64 ? 1e308 : 3e38;
        for (int c = 0; c < 8; c++) with.h.set(5 * 8 + c, with.w[c] > 0 ? huge : -huge);
        for (int c = 0; c < 8; c++) with.w.set(c, with.w[c] > 0 ? 1 : -1), without.w.set(c, with.w[c]);
        with.weights.set(5, 0);
        with.forward(), with.backward();
        without.forward(), without.backward();
        CHECK_FALSE(std::isfinite(with.loss[5]));
        CHECK(differences(with.dw, without.dw) == 0);
        CHECK(differences(with.db, without.db) == 0);
        int different = 0;
        for (int c = 0; c < 8; c++) different += !(with.dh[5 * 8 + c] == 0);
        CHECK(different == 0);
    }
}

TEST_CASE("cross_entropy: words that a bias of minus infinity forbids have probability zero") {
    CrossEntropy f(DType::f32, 3, 4, 3000);
    for (int v = 0; v < 2999; v++) f.b.set(v, -INFINITY);
    for (int& target : f.targets) target = 2999;
    f.forward(), f.backward();
    CHECK(std::fabs(f.loss[2]) <= 1e-6);
    CHECK(f.db[0] == 0);
    CHECK(std::fabs(f.db[2999]) <= 1e-6);
    for (double huge : {200.0, -200.0}) {  // exp overflows unless the largest logit is subtracted first
        for (int v = 0; v < 3000; v++) f.b.set(v, huge);
        f.forward();
        CHECK(std::fabs(f.loss[0] - 8) <= 4);
    }
}

TEST_CASE("cross_entropy: a word whose logit is far below the others has no probability, none is made up") {
    CrossEntropy f(DType::f32, 2, 4, 2000);
    for (int v = 0; v < 2000; v++) f.b.set(v, v == 3 ? 100 : v == 1900 ? -60 : -300);
    f.targets = {3, 1900};
    f.weights.set(0, 1), f.weights.set(1, 1);
    f.forward();
    CHECK(f.loss[0] == 0);
    CHECK(std::fabs(f.loss[1] - 160) <= 8);
    CHECK(f.b1[0] == 0);
    CHECK(f.b1[1900] == -1);
    CHECK(f.b1[3] == 1);
}

TEST_CASE("cross_entropy: NaN is not hidden") {
    for (DType type : {DType::f32, DType::bf16, DType::f64}) {
        CrossEntropy f(type, 3, 4, 50);
        f.b.set(20, NAN);
        f.forward();
        CHECK(std::isnan(f.loss[0]));
        CHECK(std::isnan(f.total[0]));
        CHECK(std::isnan(f.h1[0]));
        CHECK(std::isnan(f.b1[0]));
    }
}

TEST_CASE("cross_entropy: what is wrong is named, absent gradients are not touched") {
    CrossEntropy f(DType::f32, 3, 4, 5, 7);
    f.targets[2] = 5;
    CHECK_THROWS_WITH_AS(f.forward(),
                         "cross_entropy: the target of row 2 of head is 5, expected in [0, 5), the rows of w words",
                         Error);
    f.targets[2] = -1;
    CHECK_THROWS_AS(f.losses_alone(), Error);
    f.targets[2] = 0;
    CHECK_THROWS_WITH_AS(cpu::cross_entropy_forward(f.h.view("head"), f.w.view(), {}, f.ints(), {}, 0, f.loss.view(),
                                                    f.lse.view(), f.total.view(), {}, {}, {}),
                         "cross_entropy of head: there are no weights, expected them for total, h1, w1 and b1", Error);
    CHECK_THROWS_AS(cross_entropy_forward(f.w.view(), f.w.view(), {}, f.ints(), {}, 0, f.loss.view(), f.lse.view(), {},
                                          {}, {}, {}),
                    Error);
    for (double smoothing : {1.0, -0.125, double(NAN)}) {
        f.smoothing = smoothing;
        CHECK_THROWS_WITH_AS(
            f.forward(),
            text("cross_entropy of head: the label smoothing is ", smoothing, ", expected in [0, 1)").c_str(), Error);
    }
    f.smoothing = 0;
    f.forward();
    cpu::cross_entropy_backward(f.dtotal.view(), {}, {}, f.b1.view(), {}, {}, f.db.grad());
    CHECK(f.dh[0] == 7);
    CHECK(f.dw[0] == 7);
    CHECK(f.db[0] != 7);
    CHECK_THROWS_WITH_AS(cpu::cross_entropy_backward(f.dtotal.view(), f.h1.view(), {}, {}, {}, f.dw.grad(), {}),
                         "cross_entropy backward: dw a gradient is wanted, expected w1 from the forward", Error);
}

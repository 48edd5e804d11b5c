// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/table.h"
#include "tests/ops/values.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace masquerade;

namespace {

struct CrossEntropy {
    DType a;
    Values h, w, b, dloss, loss, lse, dh, dw, db;
    std::vector<int> targets;
    CrossEntropy(DType type, std::int64_t N, std::int64_t C, std::int64_t V, double fill = NAN)
        : a(arithmetic_of(type)), h(Values::random(type, {N, C}, 1)), w(Values::random(type, {V, C}, 2)),
          b(Values::random(a, {V}, 3, 4)), dloss(Values::random(a, {N}, 4)), loss(a, {N}, NAN),
          lse(a, {N}, NAN), dh(type, {N, C}, fill), dw(a, {V, C}, fill), db(a, {V}, fill) {
        for (std::int64_t n = 0; n < N; n++) targets.push_back(int(n * 7919 % V));
    }
    Ints ints() const { return {targets.data(), std::int64_t(targets.size())}; }
    void forward() {
        cpu::cross_entropy_forward(h.view(), w.view(), b.view(), ints(), loss.view(), lse.view());
    }
    void backward(bool add = false) {
        cpu::cross_entropy_backward(dloss.view(), h.view(), w.view(), b.view(), ints(), lse.view(),
                                    dh.grad(add), dw.grad(add), db.grad(add));
    }
};

}  // namespace

TEST_CASE("cross_entropy: the definition's gradients are those of the complex step") {
    CrossEntropy exact(DType::f64, 3, 4, 7), step(DType::c128, 3, 4, 7);
    exact.forward(), exact.backward();
    auto f = [&] {
        step.forward();
        return dot(step.dloss, step.loss);
    };
    CHECK(difference(exact.dh, complex_step(step.h, f)) <= 1e-12);
    CHECK(difference(exact.dw, complex_step(step.w, f)) <= 1e-12);
    CHECK(difference(exact.db, complex_step(step.b, f)) <= 1e-12);
}

TEST_CASE("cross_entropy: float and bf16 agree with double, stored and added, across blocks") {
    const std::int64_t sizes[][3] = {{1, 1, 1},      {2, 33, 31},   {65, 16, 129},
                                     {33, 24, 2700}, {1000, 5, 40}, {0, 6, 7}};
    for (const auto& size : sizes)
        for (DType type : {DType::f32, DType::bf16})
            for (bool add : {false, true}) {
                std::string what =
                    text(size[0], " x ", size[1], " x ", size[2], " ", name_of(type), add ? " add" : "");
                CAPTURE(what);
                double near = type == DType::bf16 ? 8e-3 : 4e-6, fill = add ? 0.5 : NAN;
                CrossEntropy exact(DType::f64, size[0], size[1], size[2], fill);
                CrossEntropy fast(type, size[0], size[1], size[2], fill);
                exact.forward(), exact.backward(add);
                fast.forward(), fast.backward(add);
                CHECK(difference(fast.loss, exact.loss) <= 1e-6);
                CHECK(difference(fast.lse, exact.lse) <= 1e-6);
                CHECK(difference(fast.dh, exact.dh) <= near);
                CHECK(difference(fast.dw, exact.dw) <= near);
                CHECK(difference(fast.db, exact.db) <= 4e-6);
            }
}

TEST_CASE("cross_entropy: every bit is the same on any number of threads, a row's alone or among others") {
    int before = threads();
    for (DType type : {DType::f32, DType::bf16}) {
        CrossEntropy one(type, 1000, 40, 1500), many(type, 1000, 40, 1500);
        set_threads(1);
        one.forward(), one.backward();
        for (int count : {2, 4, 8}) {
            set_threads(count);
            many.forward(), many.backward();
            CHECK(many.loss.bytes == one.loss.bytes);
            CHECK(many.lse.bytes == one.lse.bytes);
            CHECK(many.dh.bytes == one.dh.bytes);
            CHECK(many.dw.bytes == one.dw.bytes);
            CHECK(many.db.bytes == one.db.bytes);
        }
        for (std::int64_t row : {0, 17, 959, 960, 999}) {
            CrossEntropy alone(type, 1, 40, 1500);
            for (int c = 0; c < 40; c++) alone.h.set(c, one.h.get(row * 40 + c));
            alone.targets[0] = one.targets[std::size_t(row)];
            alone.dloss.set(0, one.dloss.get(row));
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

TEST_CASE("cross_entropy: a row of no weight adds exactly nothing, though its loss be infinite") {
    for (DType type : {DType::f32, DType::bf16, DType::f64}) {
        CrossEntropy with(type, 6, 8, 50), without(type, 5, 8, 50);
        double huge = type == DType::f64 ? 1e308 : 3e38;
        for (int c = 0; c < 8; c++) with.h.set(5 * 8 + c, with.w[c] > 0 ? huge : -huge);
        for (int c = 0; c < 8; c++) with.w.set(c, with.w[c] > 0 ? 1 : -1), without.w.set(c, with.w[c]);
        with.dloss.set(5, 0);
        with.forward(), with.backward();
        without.forward(), without.backward();
        CHECK_FALSE(std::isfinite(with.loss[5]));
        int different = 0;
        for (std::int64_t i = 0; i < with.dw.count(); i++) different += !(with.dw[i] == without.dw[i]);
        for (std::int64_t i = 0; i < with.db.count(); i++) different += !(with.db[i] == without.db[i]);
        for (int c = 0; c < 8; c++) different += !(with.dh[5 * 8 + c] == 0);
        CHECK(different == 0);
    }
}

TEST_CASE("cross_entropy: words that a bias of minus infinity forbids have probability zero") {
    CrossEntropy f(DType::f32, 3, 4, 3000);
    for (int v = 0; v < 2999; v++) f.b.set(v, -INFINITY);
    for (int& target : f.targets) target = 2999;
    f.forward(), f.backward();
    CHECK(std::fabs(f.loss[1]) <= 1e-6);
    CHECK(f.db[0] == 0);
    CHECK(std::fabs(f.db[2999]) <= 1e-6);
    for (double huge : {200.0, -200.0}) {  // exp overflows unless the largest is taken out
        for (int v = 0; v < 3000; v++) f.b.set(v, huge);
        f.forward();
        CHECK(std::fabs(f.loss[0] - 8) <= 4);
    }
}

TEST_CASE("cross_entropy: a wrong target is named, absent gradients are not touched") {
    CrossEntropy f(DType::f32, 3, 4, 5, 7);
    f.targets[2] = 5;
    CHECK_THROWS_WITH_AS(
        cpu::cross_entropy_forward(f.h.view("head"), f.w.view("words"), {}, f.ints(), f.loss.view(),
                                   f.lse.view()),
        "cross_entropy: the target of row 2 of head is 5, expected in [0, 5), the rows of w words", Error);
    f.targets[2] = -1;
    CHECK_THROWS_AS(f.backward(), Error);
    f.targets[2] = 0;
    f.forward();
    cpu::cross_entropy_backward(f.dloss.view(), f.h.view(), f.w.view(), f.b.view(), f.ints(), f.lse.view(),
                                {}, {}, f.db.grad());
    CHECK(f.dh[0] == 7);
    CHECK(f.dw[0] == 7);
    CHECK(f.db[0] != 7);
    CHECK_THROWS_AS(
        cpu::cross_entropy_forward(f.w.view(), f.w.view(), {}, f.ints(), f.loss.view(), f.lse.view()), Error);
}

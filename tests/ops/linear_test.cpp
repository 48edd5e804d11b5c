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

struct Linear {
    DType a;
    Values x, w, b, dy, y, dx, dw, db;
    Linear(DType type, std::int64_t M, std::int64_t I, std::int64_t O, double fill = NAN)
        : a(arithmetic_of(type)),
          x(Values::random(type, {M, I}, 1)),
          w(Values::random(type, {O, I}, 2)),
          b(Values::random(a, {O}, 3)),
          dy(Values::random(type, {M, O}, 4)),
          y(type, {M, O}, fill),
          dx(type, {M, I}, fill),
          dw(a, {O, I}, fill),
          db(a, {O}, fill) {}
    void run(bool add = false) {
        cpu::linear_forward(x.view(), w.view(), b.view(), y.view());
        cpu::linear_backward(dy.view(), x.view(), w.view(), dx.grad(add), dw.grad(add), db.grad(add));
    }
};

}  // namespace

TEST_CASE("linear: the definition's gradients are those of the complex step") {
    Linear exact(DType::f64, 3, 5, 4), step(DType::c128, 3, 5, 4);
    exact.run();
    auto f = [&] {
        cpu::linear_forward(step.x.view(), step.w.view(), step.b.view(), step.y.view());
        return dot(step.dy, step.y);
    };
    CHECK(difference(exact.dx, complex_step(step.x, f)) <= 1e-12);
    CHECK(difference(exact.dw, complex_step(step.w, f)) <= 1e-12);
    CHECK(difference(exact.db, complex_step(step.b, f)) <= 1e-12);
}

TEST_CASE("linear: float and bf16 agree with double, stored and added") {
    const std::int64_t sizes[][3] = {{1, 1, 1}, {2, 31, 33}, {65, 63, 127}, {129, 127, 32}, {200, 600, 130}, {0, 8, 9}};
    for (const auto& size : sizes)
        for (DType type : {DType::f32, DType::bf16}) {
            std::string what = text(size[0], " x ", size[1], " x ", size[2], " ", name_of(type));
            CAPTURE(what);
            double near = type == DType::bf16 ? 8e-3 : 2e-6;
            Linear exact(DType::f64, size[0], size[1], size[2]), fast(type, size[0], size[1], size[2]);
            exact.run(), fast.run();
            CHECK(difference(fast.y, exact.y) <= near);
            CHECK(difference(fast.dx, exact.dx) <= near);
            CHECK(difference(fast.dw, exact.dw) <= near);
            CHECK(difference(fast.db, exact.db) <= 2e-6);
            Linear exact_added(DType::f64, size[0], size[1], size[2], 5), added(type, size[0], size[1], size[2], 5);
            exact_added.run(true), added.run(true);
            CHECK(difference(added.dx, exact_added.dx) <= near);
            CHECK(difference(added.dw, exact_added.dw) <= near);
            CHECK(difference(added.db, exact_added.db) <= 2e-6);
        }
}

TEST_CASE("linear: every bit is the same on any number of threads") {
    int before = threads();
    for (DType type : {DType::f32, DType::bf16}) {
        Linear one(type, 300, 200, 170), many(type, 300, 200, 170);
        set_threads(1);
        one.run();
        for (int count : {2, 4, 8}) {
            set_threads(count);
            many.run();
            CHECK(many.y.bytes == one.y.bytes);
            CHECK(many.dx.bytes == one.dx.bytes);
            CHECK(many.dw.bytes == one.dw.bytes);
            CHECK(many.db.bytes == one.db.bytes);
        }
    }
    set_threads(before);
}

TEST_CASE("linear: absent bias, absent gradients, wrong shapes") {
    Linear l(DType::f32, 4, 3, 2, 7);
    cpu::linear_forward(l.x.view(), l.w.view(), {}, l.y.view());
    CHECK(std::fabs(l.y[0] - (l.x[0] * l.w[0] + l.x[1] * l.w[1] + l.x[2] * l.w[2])) <= 1e-6);
    cpu::linear_backward(l.dy.view(), l.x.view(), l.w.view(), {}, l.dw.grad(), {});
    CHECK(l.dx[0] == 7);
    CHECK(l.db[0] == 7);
    CHECK(l.dw[0] != 7);

    Values narrow(DType::f32, {2, 4}), half(DType::bf16, {2, 3});
    CHECK_THROWS_WITH_AS(
        linear_forward(l.x.view("enc.0"), narrow.view("enc.0.w"), {}, l.y.view("u")),
        "linear_forward: w does not fit: x enc.0 is (4,3) f32, w enc.0.w is (2,4) f32, y u is (4,2) f32; "
        "expected x(M,I) w(O,I) b?(O)A y(M,O)E dw(O,I)A",
        Error);
    CHECK_THROWS_AS(linear_forward(l.x.view(), half.view(), {}, l.y.view()), Error);
    CHECK_THROWS_AS(linear_forward(l.x.view(), l.w.view(), {}, l.x.view()), Error);
    CHECK_THROWS_AS(linear_backward(l.dy.view(), l.x.view(), l.w.view(), l.dw.grad(), {}, {}), Error);
}

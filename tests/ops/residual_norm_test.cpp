// SPDX-License-Identifier: MIT
// Tests that residual_norm has, in float, the bits of dropout, add and layernorm, forward and backward.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "engine/ops/cpu/parallel.h"
#include "engine/ops/table.h"
#include "tests/ops/values.h"

using namespace masquerade;

namespace {

struct Block {
    DType type, a;
    int N, C;
    std::vector<int> document, position;
    DropoutRule rule;
    Values x, f, w, b, dropped, s, y, mean, rstd, dy, ds, dx, df, dw, db;

    Block(DType dtype, int rows, int columns, float rate)
        : type(dtype),
          a(arithmetic_of(dtype)),
          N(rows),
          C(columns),
          rule{rate, make_stream(9, "ffn.dropout", 4)},
          x(Values::random(type, {N, C}, 1)),
          f(Values::random(type, {N, C}, 2)),
          w(Values::random(a, {C}, 3)),
          b(Values::random(a, {C}, 4)),
          dropped(type, {N, C}, NAN),
          s(type, {N, C}, NAN),
          y(type, {N, C}, NAN),
          mean(a, {N}, NAN),
          rstd(a, {N}, NAN),
          dy(Values::random(type, {N, C}, 5)),
          ds(type, {N, C}, NAN),
          dx(type, {N, C}, 0.5),
          df(type, {N, C}, 0.25),
          dw(a, {C}, 0.5),
          db(a, {C}, 0.25) {
        for (int n = 0; n < N; n++) document.push_back(n / 7), position.push_back(n % 7);
    }
    RowNames rows() const { return {{document.data(), N}, {position.data(), N}}; }

    void in_one(bool add) {
        cpu::residual_norm_forward(x.view(), f.view(), rows(), rule, w.view(), b.view(), 1e-12, y.view(), s.view(),
                                   mean.view(), rstd.view());
        cpu::residual_norm_backward(dy.view(), s.view(), rows(), rule, w.view(), mean.view(), rstd.view(), dx.grad(add),
                                    df.grad(add), dw.grad(add), db.grad(add));
    }
    void in_three(bool add) {
        cpu::dropout_forward(f.view(), rows(), rule, dropped.view());
        cpu::add_forward(x.view(), dropped.view(), s.view());
        cpu::layernorm_forward(s.view(), w.view(), b.view(), 1e-12, y.view(), mean.view(), rstd.view());
        cpu::layernorm_backward(dy.view(), s.view(), w.view(), mean.view(), rstd.view(), ds.grad(), dw.grad(add),
                                db.grad(add));
        cpu::add_backward(ds.view(), dx.grad(add), dropped.grad());
        cpu::dropout_backward(dropped.view(), rows(), rule, df.grad(add));
    }
};

}  // namespace

TEST_CASE("residual_norm: the bits of dropout, add and layernorm") {
    for (int C : {1, 31, 64, 257, 768})
        for (float rate : {0.f, 0.1f})
            for (bool add : {false, true}) {
                CAPTURE(C);
                CAPTURE(rate);
                Block one(DType::f32, 150, C, rate), three(DType::f32, 150, C, rate);
                one.in_one(add), three.in_three(add);
                CHECK(one.s.bytes == three.s.bytes);
                CHECK(one.y.bytes == three.y.bytes);
                CHECK(one.mean.bytes == three.mean.bytes);
                CHECK(one.rstd.bytes == three.rstd.bytes);
                CHECK(one.dx.bytes == three.dx.bytes);
                CHECK(one.df.bytes == three.df.bytes);
                CHECK(one.dw.bytes == three.dw.bytes);
                CHECK(one.db.bytes == three.db.bytes);
            }
}

TEST_CASE("residual_norm: bf16 follows double on sums of its own rounding") {
    Block half(DType::bf16, 70, 256, 0.1f), exact(DType::f64, 70, 256, 0.1f);
    half.in_one(false), exact.in_one(false);
    CHECK(difference(half.s, exact.s) <= 4e-3);
    CHECK(difference(half.y, exact.y) <= 8e-3);
    CHECK(difference(half.dx, exact.dx) <= 1e-2);
    CHECK(difference(half.df, exact.df) <= 1e-2);
    CHECK(difference(half.dw, exact.dw) <= 4e-3);
    CHECK(difference(half.db, exact.db) <= 1e-6);
}

TEST_CASE("residual_norm: x and f may be one tensor; its gradient is then the sum of both") {
    Block block(DType::f32, 20, 65, 0.1f), apart(DType::f32, 20, 65, 0.1f);
    apart.f = apart.x;
    apart.in_one(false);
    cpu::residual_norm_forward(block.x.view(), block.x.view(), block.rows(), block.rule, block.w.view(), block.b.view(),
                               1e-12, block.y.view(), block.s.view(), block.mean.view(), block.rstd.view());
    CHECK(block.y.bytes == apart.y.bytes);
    cpu::residual_norm_backward(block.dy.view(), block.s.view(), block.rows(), block.rule, block.w.view(),
                                block.mean.view(), block.rstd.view(), block.dx.grad(), block.dx.grad(true), {}, {});
    int different = 0;
    for (int i = 0; i < 20 * 65; i++) different += !(std::fabs(block.dx[i] - (apart.dx[i] + apart.df[i])) <= 1e-5);
    CHECK(different == 0);
}

TEST_CASE("residual_norm: a rate outside [0, 1) is refused") {
    for (float rate : {-0.1f, 1.f, NAN}) {
        Block block(DType::f32, 2, 3, rate);
        CHECK_THROWS_AS(block.in_one(false), Error);
    }
}

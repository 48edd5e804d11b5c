// SPDX-License-Identifier: MIT
// Tests linear_gelu and gelu_linear, which compute the gelu of a feed-forward network together with a product, part by
// part. Their bits must be those of the separate ops.
#include "engine/ops/table.h"
#include "tests/ops/product_forms.h"
#include "tests/ops/values.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace masquerade;

namespace {

struct Network {
    DType a;
    Values x, w1, b1, w2, dy, u, activated, du, dw, db;
    Network(DType type, std::int64_t M, std::int64_t C, std::int64_t F)
        : a(arithmetic_of(type)),
          x(Values::random(type, {M, C}, 1, 2)),
          w1(Values::random(type, {F, C}, 2, 0.2)),
          b1(Values::random(a, {F}, 3)),
          w2(Values::random(type, {C, F}, 4, 0.2)),
          dy(Values::random(type, {M, C}, 5)),
          u(type, {M, F}, NAN),
          activated(type, {M, F}, NAN),
          du(type, {M, F}, 0.5),
          dw(a, {C, F}, 0.5),
          db(a, {C}, 0.5) {}

    void together(GeluKind kind, bool add) {
        cpu::linear_gelu_forward(x.view(), w1.view(), b1.view(), kind, u.view(), activated.view());
        cpu::gelu_linear_backward(dy.view(), u.view(), activated.view(), w2.view(), kind, du.grad(add), dw.grad(add),
                                  db.grad(add));
    }
    void one_by_one(GeluKind kind, bool add) {
        cpu::linear_forward(x.view(), w1.view(), b1.view(), u.view());
        cpu::gelu_forward(u.view(), kind, activated.view());
        Values da(u.dtype, u.shape, NAN);
        cpu::linear_backward(dy.view(), activated.view(), w2.view(), da.grad(), dw.grad(add), db.grad(add));
        cpu::gelu_backward(da.view(), u.view(), kind, du.grad(add));
    }
};

void expect_same_bits(const Network& a, const Network& b) {
    CHECK(a.u.bytes == b.u.bytes);
    CHECK(a.activated.bytes == b.activated.bytes);
    CHECK(a.du.bytes == b.du.bytes);
    CHECK(a.dw.bytes == b.dw.bytes);
    CHECK(a.db.bytes == b.db.bytes);
}

}  // namespace

TEST_CASE("linear gelu: the bits of the two ops, in every type, kind, size, instruction set and form") {
    // The sizes have incomplete tiles, and more than one block of depth, of packed columns and of rows.
    const std::int64_t sizes[][3] = {{1, 1, 1}, {13, 31, 33}, {25, 700, 70}, {200, 9, 830}, {0, 8, 9}};
    each_product_form([&](const std::string& form, int count) {
        for (const auto& size : sizes)
            for (DType type : {DType::f32, DType::bf16})
                for (bool add : {false, true}) {
                    std::string what = text(form, ", ", name_of(type), ' ', size[0], " x ", size[1], " x ", size[2],
                                            add ? ", added" : "");
                    CAPTURE(what);
                    const GeluKind kind = count == 1 ? GeluKind::tanh : GeluKind::erf;
                    Network a(type, size[0], size[1], size[2]), b(type, size[0], size[1], size[2]);
                    a.together(kind, add), b.one_by_one(kind, add);
                    expect_same_bits(a, b);
                }
    });
}

TEST_CASE("linear gelu: wrong shapes are refused at the door, absent gradients stay absent") {
    Network n(DType::f32, 4, 3, 5);
    n.together(GeluKind::erf, false);
    const Values weights = n.dw;
    cpu::gelu_linear_backward(n.dy.view(), n.u.view(), n.activated.view(), n.w2.view(), GeluKind::erf, n.du.grad(), {},
                              {});
    CHECK(n.dw.bytes == weights.bytes);
    CHECK_THROWS_WITH_AS(linear_gelu_forward(n.x.view(), n.w1.view(), n.b1.view(), GeluKind::erf, n.u.view("up"),
                                             n.x.view("active")),
                         doctest::Contains("a does not fit: x"), Error);
    CHECK_THROWS_WITH_AS(gelu_linear_backward(n.dy.view(), n.u.view("up"), n.x.view("active"), n.w2.view(),
                                              GeluKind::erf, n.du.grad(), n.dw.grad(), n.db.grad()),
                         doctest::Contains("u up is (4,5) f32, a active is (4,3) f32"), Error);
    CHECK_THROWS_AS(gelu_linear_backward(n.dy.view(), n.u.view(), n.activated.view(), n.w2.view(), GeluKind::erf,
                                         n.dy.grad(), {}, {}),
                    Error);
    CHECK_THROWS_AS(gelu_linear_backward(n.x.view(), n.u.view(), n.activated.view(), n.w1.view(), GeluKind::erf,
                                         n.du.grad(), {}, {}),
                    Error);
}

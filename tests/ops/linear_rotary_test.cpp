// SPDX-License-Identifier: MIT
// Tests linear_rotary, which rotates queries and keys together with the product that computes them, part by part. Its
// bits must be those of the two separate ops.
#include "engine/ops/table.h"
#include "tests/ops/product_forms.h"
#include "tests/ops/values.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace masquerade;

namespace {

constexpr int P = 40;

struct Projection {
    int columns;
    DType a;
    std::vector<int> places;
    Values rotary_table, x, w, b, dy, y, dx, dw, db;
    // `heads` heads of D numbers are rotated, and `more` further columns are not.
    Projection(DType type, std::int64_t M, std::int64_t I, int heads, int D, int more)
        : columns(heads * D),
          a(arithmetic_of(type)),
          rotary_table(Values::random(a, {P, D}, 1)),
          x(Values::random(type, {M, I}, 2)),
          w(Values::random(type, {columns + more, I}, 3, 0.2)),
          b(Values::random(a, {columns + more}, 4)),
          dy(Values::random(type, {M, columns + more}, 5)),
          y(type, {M, columns + more}, NAN),
          dx(type, {M, I}, 0.5),
          dw(a, {columns + more, I}, 0.5),
          db(a, {columns + more}, 0.5) {
        for (std::int64_t m = 0; m < M; m++) places.push_back(int(7 * m % P));
    }
    Ints positions() const { return {places.data(), std::int64_t(places.size())}; }

    void together(bool add) {
        cpu::linear_rotary_forward(x.view(), w.view(), b.view(), positions(), rotary_table.view(), columns, y.view());
        cpu::linear_rotary_backward(dy.view(), x.view(), w.view(), positions(), rotary_table.view(), columns,
                                    dx.grad(add), dw.grad(add), db.grad(add));
    }
    void one_by_one(bool add) {
        Values straight(y.dtype, y.shape, NAN), back(y.dtype, y.shape, NAN);
        cpu::linear_forward(x.view(), w.view(), b.view(), straight.view());
        cpu::rotary_forward(straight.view(), positions(), rotary_table.view(), columns, y.view());
        cpu::rotary_backward(dy.view(), positions(), rotary_table.view(), columns, back.grad());
        cpu::linear_backward(back.view(), x.view(), w.view(), dx.grad(add), dw.grad(add), db.grad(add));
    }
};

void expect_same_bits(const Projection& a, const Projection& b) {
    CHECK(a.y.bytes == b.y.bytes);
    CHECK(a.dx.bytes == b.dx.bytes);
    CHECK(a.dw.bytes == b.dw.bytes);
    CHECK(a.db.bytes == b.db.bytes);
}

}  // namespace

TEST_CASE("linear rotary: the bits of the two ops, in every type, size, instruction set and form") {
    // The sizes have heads that cross tiles, columns that are not rotated, more than one block of depth, and no rows.
    const int sizes[][5] = {
        {1, 1, 1, 2, 0}, {13, 31, 3, 22, 5}, {70, 330, 2, 64, 128}, {200, 24, 12, 36, 1}, {0, 8, 1, 4, 4}};
    each_product_form([&](const std::string& form, int) {
        for (const auto& n : sizes)
            for (DType type : {DType::f32, DType::bf16})
                for (bool add : {false, true}) {
                    std::string what = text(form, ", ", name_of(type), ' ', n[0], " x ", n[1], ", ", n[2], " heads of ",
                                            n[3], add ? ", added" : "");
                    CAPTURE(what);
                    Projection a(type, n[0], n[1], n[2], n[3], n[4]), b(type, n[0], n[1], n[2], n[3], n[4]);
                    a.together(add), b.one_by_one(add);
                    expect_same_bits(a, b);
                }
    });
}

TEST_CASE("linear rotary: what does not fit is refused at the door") {
    Projection n(DType::f32, 4, 3, 2, 4, 1);
    CHECK_THROWS_WITH_AS(cpu::linear_rotary_forward(n.x.view(), n.w.view(), n.b.view(), n.positions(),
                                                    n.rotary_table.view(), 6, n.y.view("q")),
                         "rotary q (4,9): 6 columns in heads of 4; heads must be even and fill the columns", Error);
    n.places[2] = P;
    CHECK_THROWS_WITH_AS(cpu::linear_rotary_forward(n.x.view(), n.w.view(), n.b.view(), n.positions(),
                                                    n.rotary_table.view("rotary_table"), 8, n.y.view()),
                         "rotary: position 40 at place 2, expected in [0, 40), the rows of rotary_table", Error);
    CHECK_THROWS_AS(linear_rotary_backward(n.dy.view(), n.x.view(), n.w.view(), n.positions(), n.rotary_table.view(), 8,
                                           n.dx.grad(), {}, {}),
                    Error);
}

// SPDX-License-Identifier: MIT
// Tests that row numbers and positions are checked before anything is read or written at them.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "engine/base/error.h"
#include "engine/ops/ops.h"
#include "tests/ops/values.h"

using namespace masquerade;

namespace {

// A matrix of f32, (rows,4).
struct Matrix {
    std::vector<float> numbers;
    View view;
    Matrix(std::int64_t rows, const char* path) : numbers(std::size_t(4 * rows)) {
        view.data = numbers.data();
        view.shape = {rows, 4};
        view.path = path;
    }
};

Ints ints(const std::vector<int>& numbers) { return {numbers.data(), std::int64_t(numbers.size())}; }

}  // namespace

TEST_CASE("rows: a row that is not there is an error that names it") {
    Matrix few(3, "few"), two(2, "two");
    for (int wrong : {-1, 3}) {
        const std::vector<int> rows = {0, wrong};
        CHECK_THROWS_AS(gather_rows_forward(few.view, ints(rows), two.view), Error);
        CHECK_THROWS_AS(gather_rows_backward(two.view, ints(rows), Grad{few.view, false}), Error);
        CHECK_THROWS_AS(store_rows(two.view, ints(rows), few.view), Error);
    }
    const std::vector<int> which = {-1, 0, 2};  // -1 keeps the row of x
    Matrix y(3, "y");
    CHECK_THROWS_WITH_AS(replace_rows_forward(few.view, ints(which), two.view, y.view),
                         "replace_rows: row of u 2 at place 2, expected in [0, 2), the rows of two", Error);
    CHECK_THROWS_AS(replace_rows_backward(y.view, ints(which), Grad{few.view, false}, Grad{two.view, false}), Error);
    const std::vector<int> good = {-1, 0, 1};
    CHECK_NOTHROW(replace_rows_forward(few.view, ints(good), two.view, y.view));
}

TEST_CASE("rotary: a position beyond the table is an error") {
    Matrix x(2, "x"), y(2, "y"), rotary_table(5, "rotary_table");
    const std::vector<int> positions = {4, 5}, good = {4, 0};
    CHECK_THROWS_WITH_AS(rotary_forward(x.view, ints(positions), rotary_table.view, 4, y.view),
                         "rotary: position 5 at place 1, expected in [0, 5), the rows of rotary_table", Error);
    CHECK_NOTHROW(rotary_forward(x.view, ints(good), rotary_table.view, 4, y.view));
}

TEST_CASE("rows: of equal maxima the lowest row has the gradient; NaN is the maximum, and no rows are 0") {
    const std::vector<int> first{0, 3, 3, 5};
    Values x(DType::f32, {5, 2}), y(DType::f32, {3, 2}, NAN), dy(DType::f32, {3, 2}, 1), dx(DType::f32, {5, 2}, NAN);
    const double numbers[] = {1, 2, 3, 0, 3, 2, -1, -2, -5, NAN};
    for (int i = 0; i < 10; i++) x.set(i, numbers[i]);
    const Ints parts{first.data(), 4};
    cpu::max_rows_forward(x.view(), parts, y.view());
    cpu::max_rows_backward(dy.view(), x.view(), parts, dx.grad());
    const double maxima[] = {3, 2, 0, 0, -1}, gradients[] = {0, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    for (int i = 0; i < 5; i++) CHECK(y[i] == maxima[i]);
    CHECK(std::isnan(y[5]));
    for (int i = 0; i < 10; i++) CHECK(dx[i] == gradients[i]);
}

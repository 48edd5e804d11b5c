// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/table.h"
#include "tests/ops/values.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace masquerade;

namespace {

const DType types[] = {DType::f32, DType::bf16, DType::f64, DType::c128};

// Returns ids with repetitions, including the first and the last row of the table.
std::vector<int> some_ids(std::int64_t N, std::int64_t V) {
    std::vector<int> ids;
    for (std::int64_t n = 0; n < N; n++) ids.push_back(int(n % 3 == 0 ? 0 : n % 3 == 1 ? V - 1 : n * n % V));
    return ids;
}

}  // namespace

TEST_CASE("embedding: rows come by id, gradients go back in row order, the rest is zero or kept") {
    for (DType type : types)
        for (std::int64_t N : {0, 1, 200})
            for (bool add : {false, true}) {
                const std::int64_t V = 600, C = 65;
                std::vector<int> list = some_ids(N, V);
                Ints ids{list.data(), N};
                Values w = Values::random(type, {V, C}, 1), dy = Values::random(type, {N, C}, 2);
                Values y(type, {N, C}, NAN), dw(arithmetic_of(type), {V, C}, add ? 0.5 : NAN);
                cpu::embedding_forward(ids, w.view(), y.view());
                cpu::embedding_backward(dy.view(), ids, dw.grad(add));
                int different = 0;
                for (std::int64_t n = 0; n < N; n++)
                    for (std::int64_t c = 0; c < C; c++)
                        different += !(y[n * C + c] == w[list[std::size_t(n)] * C + c]);
                CHECK(different == 0);
                Values expected(DType::f64, {V, C}, add ? 0.5 : 0);
                for (std::int64_t n = 0; n < N; n++)
                    for (std::int64_t c = 0; c < C; c++) {
                        std::int64_t at = list[std::size_t(n)] * C + c;
                        expected.set(at, expected[at] + dy[n * C + c]);
                    }
                CHECK(difference(dw, expected) <= 1e-6);
            }
}

TEST_CASE("embedding: every bit of the gradient is the same on any number of threads") {
    const std::int64_t N = 500, V = 1000, C = 70;
    std::vector<int> list = some_ids(N, V);
    Values dy = Values::random(DType::f32, {N, C}, 3, 1e3), one(DType::f32, {V, C}), many(DType::f32, {V, C}, NAN);
    int before = threads();
    set_threads(1);
    cpu::embedding_backward(dy.view(), {list.data(), N}, one.grad());
    for (int count : {2, 4, 8}) {
        set_threads(count);
        cpu::embedding_backward(dy.view(), {list.data(), N}, many.grad());
        CHECK(many.bytes == one.bytes);
    }
    set_threads(before);
}

TEST_CASE("embedding: an id outside the table is named") {
    Values w(DType::f32, {5, 2}), y(DType::f32, {3, 2});
    for (int wrong : {-1, 5}) {
        int list[] = {0, 4, wrong};
        CHECK_THROWS_WITH_AS(
            cpu::embedding_forward({list, 3}, w.view("words"), y.view()),
            text("embedding: id ", wrong, " at place 2, expected in [0, 5), the rows of words").c_str(), Error);
        CHECK_THROWS_AS(cpu::embedding_backward(y.view(), {list, 3}, w.grad()), Error);
    }
    int list[] = {0, 4};
    CHECK_THROWS_AS(embedding_forward({list, 2}, w.view(), y.view()), Error);
}

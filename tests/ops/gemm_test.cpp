// SPDX-License-Identifier: MIT
// Compares the matrix product with its definition in double, and tests the promise that the bits of an element depend
// only on its row and its column.
#include "engine/ops/cpu/gemm.h"

#include "engine/base/error.h"
#include "engine/ops/cpu/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace masquerade;

namespace {

// A matrix of f32 or bf16, stored by rows or by columns.
struct Stored {
    DType dtype;
    std::int64_t rows, columns;
    bool transposed;
    std::vector<float> f32;
    std::vector<bfloat16> bf16;

    Stored(DType type, std::int64_t r, std::int64_t c, bool turned, unsigned salt)
        : dtype(type), rows(r), columns(c), transposed(turned), f32(std::size_t(r * c)), bf16(std::size_t(r * c)) {
        for (std::size_t i = 0; i < f32.size(); i++) {
            salt = salt * 1664525u + 1013904223u;
            bf16[i] = bfloat16(float(salt >> 8) / float(1 << 23) - 1.0f);
            f32[i] = type == DType::bf16 ? float(bf16[i]) : float(salt >> 8) / float(1 << 23) - 1.0f;
        }
    }
    const void* data() const { return dtype == DType::f32 ? static_cast<const void*>(f32.data()) : bf16.data(); }
    Factor factor() const { return {data(), dtype, transposed ? 1 : columns, transposed ? rows : 1}; }
    Factor rows_from(std::int64_t first) const {
        Factor f = factor();
        f.data = static_cast<const char*>(f.data) + std::size_t(first * f.row) * bytes_of(dtype);
        return f;
    }
    double at(std::int64_t i, std::int64_t j) const {
        return f32[std::size_t(transposed ? j * rows + i : i * columns + j)];
    }
};

// The result C. The memory before and behind it must not change.
struct Target {
    DType dtype;
    std::int64_t columns;
    std::vector<float> f32;
    std::vector<bfloat16> bf16;
    static constexpr std::size_t guard = 40;

    Target(DType type, std::int64_t m, std::int64_t n, float value)
        : dtype(type),
          columns(n),
          f32(std::size_t(m * n) + 2 * guard, value),
          bf16(std::size_t(m * n) + 2 * guard, bfloat16(value)) {}
    Product product(bool add = false, const float* bias = nullptr) {
        void* data = dtype == DType::f32 ? static_cast<void*>(f32.data() + guard) : bf16.data() + guard;
        return {data, dtype, columns, add, bias};
    }
    float at(std::int64_t i, std::int64_t j) const {
        std::size_t place = guard + std::size_t(i * columns + j);
        return dtype == DType::f32 ? f32[place] : float(bf16[place]);
    }
    bool guards_are(float value) const {
        bool same = true;
        for (std::size_t i = 0; i < guard; i++)
            same = same && f32[i] == value && f32[f32.size() - 1 - i] == value && float(bf16[i]) == value &&
                   float(bf16[bf16.size() - 1 - i]) == value;
        return same;
    }
};

const char* const instruction_sets[] = {"avx512", "avx2", "generic"};
struct Order {
    const char* name;
    bool a, b;  // whether A and B are stored transposed
};
const Order orders[] = {{"NN", false, false}, {"NT", false, true}, {"TN", true, false}, {"TT", true, true}};

// Runs f with every instruction set that this machine has, then restores the previous one.
template <class F>
void under_every_instruction_set(F f) {
    std::string before = instruction_set();
    for (const char* name : instruction_sets)
        if (set_instruction_set(name)) {
            CAPTURE(name);
            f();
        }
    set_instruction_set(before.c_str());
}

// Returns the largest |c - reference|, in units of its bound: 8 eps sqrt(K) |a||b| plus the rounding of the stored
// result.
double worst(const Stored& a, const Stored& b, const Target& c, double start, const float* bias) {
    double worst = 0;
    for (std::int64_t i = 0; i < a.rows; i++)
        for (std::int64_t j = 0; j < b.columns; j++) {
            double sum = start + (bias ? bias[j] : 0), aa = 0, bb = 0;
            for (std::int64_t k = 0; k < a.columns; k++) {
                sum += a.at(i, k) * b.at(k, j);
                aa += a.at(i, k) * a.at(i, k), bb += b.at(k, j) * b.at(k, j);
            }
            double bound = 8 * 6e-8 * std::sqrt(double(a.columns)) * std::sqrt(aa * bb) + 1e-6 * std::fabs(sum) + 1e-30;
            if (c.dtype == DType::bf16) bound += std::fabs(sum) / 256;
            double error = std::fabs(double(c.at(i, j)) - sum) / bound;
            worst = error > worst || error != error ? error : worst;
        }
    return worst;
}

}  // namespace

TEST_CASE("gemm agrees with its definition in every order, storage, size and instruction set") {
    const std::int64_t sizes[][3] = {{1, 1, 1},      {2, 31, 32},   {31, 33, 1},   {32, 2, 63},  {33, 65, 127},
                                     {63, 127, 65},  {65, 129, 2},  {127, 32, 31}, {129, 1, 33}, {5, 1000, 129},
                                     {13, 17, 1000}, {200, 3, 600}, {3, 2100, 300}};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> bias(2100);
    for (std::size_t i = 0; i < bias.size(); i++) bias[i] = float(i % 17) - 8;
    under_every_instruction_set([&] {
        for (const auto& size : sizes)
            for (const Order& order : orders)
                for (DType in : {DType::f32, DType::bf16})
                    for (DType out : {DType::f32, DType::bf16}) {
                        std::int64_t m = size[0], n = size[1], k = size[2];
                        std::string what =
                            text(m, " x ", n, " x ", k, " ", order.name, " ", name_of(in), " to ", name_of(out));
                        CAPTURE(what);
                        Stored a(in, m, k, order.a, 1), b(in, k, n, order.b, 2);
                        Target stored(out, m, n, nan), added(out, m, n, 3), biased(out, m, n, nan);
                        gemm(m, n, k, a.factor(), b.factor(), stored.product());
                        CHECK(worst(a, b, stored, 0, nullptr) <= 1);
                        gemm(m, n, k, a.factor(), b.factor(), added.product(true));
                        CHECK(worst(a, b, added, 3, nullptr) <= 1);
                        CHECK(added.guards_are(3));
                        gemm(m, n, k, a.factor(), b.factor(), biased.product(false, bias.data()));
                        CHECK(worst(a, b, biased, 0, bias.data()) <= 1);
                    }
    });
}

TEST_CASE("gemm: the bits of a row depend neither on the other rows nor on the threads") {
    const std::int64_t most = 2048, shapes[][2] = {{40, 400}, {100, 96}};
    int before = threads();
    under_every_instruction_set([&] {
        for (const Order& order : orders)
            for (DType type : {DType::f32, DType::bf16})
                for (const auto& shape : shapes) {
                    std::int64_t n = shape[0], k = shape[1];
                    Stored a(type, most, k, order.a, 3), b(type, k, n, order.b, 4);
                    Target whole(type, most, n, 0);
                    set_threads(1);
                    gemm(most, n, k, a.factor(), b.factor(), whole.product());
                    for (std::int64_t m : {1, 2, 8, 17, 64, 2048})
                        for (int count : {1, 2, 4, 8}) {
                            if ((count > 1 && m < 17) || (count == 1 && m == most)) continue;
                            std::string what = text(m, " x ", n, " x ", k, " ", order.name, " ", name_of(type), ", ",
                                                    count, " threads");
                            CAPTURE(what);
                            set_threads(count);
                            std::int64_t first = most - m;  // the last m rows
                            Target part(type, m, n, 0);
                            gemm(m, n, k, a.rows_from(first), b.factor(), part.product());
                            std::int64_t different = 0;
                            for (std::int64_t i = 0; i < m; i++)
                                for (std::int64_t j = 0; j < n; j++)
                                    different += !(part.at(i, j) == whole.at(first + i, j));
                            CHECK(different == 0);
                        }
                }
    });
    set_threads(before);
}

TEST_CASE("gemm: a packed copy of B changes no bit, and is made again for another instruction set or matrix") {
    const std::int64_t shapes[][2] = {{1, 1}, {40, 320}, {33, 321}, {129, 700}, {64, 31}};
    const int before = threads();
    std::vector<float> bias(129);
    for (std::size_t i = 0; i < bias.size(); i++) bias[i] = float(i % 17) - 8;
    PackedCopy copy;  // one for all, so that it must be made again each time
    for (const auto& shape : shapes)
        for (DType type : {DType::f32, DType::bf16})
            for (bool turned : {false, true}) {
                const std::int64_t most = 600, n = shape[0], k = shape[1];
                const Stored a(DType::f32, most, k, false, 8), b(type, k, n, turned, 9);
                under_every_instruction_set([&] {
                    for (std::int64_t m : {1, 5, 40, 600})
                        for (int count : {1, 3}) {
                            CAPTURE(text(m, " x ", n, " x ", k, turned ? " T " : " N ", name_of(type)));
                            set_threads(count);
                            for (DType of_c : {DType::f32, DType::bf16}) {
                                Target expected(of_c, m, n, 0.5f), found(of_c, m, n, 0.5f);
                                Factor constant = b.factor();
                                gemm(m, n, k, a.factor(), constant, expected.product(true, bias.data()));
                                constant.packed = &copy;
                                gemm(m, n, k, a.factor(), constant, found.product(true, bias.data()));
                                CHECK(found.f32 == expected.f32);
                                CHECK(std::memcmp(found.bf16.data(), expected.bf16.data(), 2 * found.bf16.size()) == 0);
                            }
                        }
                });
            }
    // A change of the matrix has no effect on the second product, because it reads the copy.
    Stored a(DType::f32, 4, 64, false, 8), b(DType::f32, 64, 32, true, 9);
    Factor constant = b.factor();
    constant.packed = &copy;
    Target first(DType::f32, 4, 32, 0), second(DType::f32, 4, 32, 0);
    gemm(4, 32, 64, a.factor(), constant, first.product());
    std::fill(b.f32.begin(), b.f32.end(), 0.0f);
    gemm(4, 32, 64, a.factor(), constant, second.product());
    CHECK(second.f32 == first.f32);
    // The same memory, read as another type, is another matrix. All bits 0 are the number 0 in both types.
    constant.dtype = DType::bf16;
    gemm(4, 32, 64, a.factor(), constant, second.product());
    CHECK(second.f32 == Target(DType::f32, 4, 32, 0).f32);
    set_threads(before);
}

TEST_CASE("gemm: no rows, no columns, no depth") {
    float c[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {7, 8, 9};
    Factor none{nullptr, DType::f32, 1, 1};
    gemm(0, 3, 4, none, none, {c, DType::f32, 3});
    gemm(2, 0, 4, none, none, {c, DType::f32, 3});
    CHECK(c[0] == 1);
    gemm(2, 3, 0, none, none, {c, DType::f32, 3, true});
    CHECK(c[5] == 6);
    gemm(2, 3, 0, none, none, {c, DType::f32, 3, false, bias});
    CHECK(c[0] == 7);
    CHECK(c[5] == 9);
}

TEST_CASE("gemm: NaN and infinity reach the elements they belong to and no other") {
    under_every_instruction_set([&] {
        for (DType type : {DType::f32, DType::bf16}) {
            Stored a(type, 20, 40, false, 5), b(type, 40, 50, false, 6);
            a.f32[3 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
            a.bf16[3 * 40 + 7] = bfloat16(a.f32[3 * 40 + 7]);
            Target c(type, 20, 50, 0);
            gemm(20, 50, 40, a.factor(), b.factor(), c.product());
            int wrong = 0;
            for (int i = 0; i < 20; i++)
                for (int j = 0; j < 50; j++) wrong += std::isnan(c.at(i, j)) != (i == 3);
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("gemm: bf16 keeps every NaN, also one whose rounding would carry into the exponent") {
    std::uint32_t all_ones = 0x7fffffffu;
    float a;
    std::memcpy(&a, &all_ones, sizeof a);
    const float b = 1;
    under_every_instruction_set([&] {
        bfloat16 c(0.0f);
        gemm(1, 1, 1, {&a, DType::f32, 1, 1}, {&b, DType::f32, 1, 1}, {&c, DType::bf16, 1});
        CHECK(std::isnan(float(c)));
    });
}

TEST_CASE("an unknown instruction set is refused and nothing changes") {
    std::string before = instruction_set();
    CHECK_FALSE(set_instruction_set("avx1024"));
    CHECK(before == instruction_set());
}

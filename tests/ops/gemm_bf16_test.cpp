// SPDX-License-Identifier: MIT
// Compares the matrix product of two bf16 factors with its definition in double, in every form that the machine has,
// and tests the promises about its bits.
#include "engine/base/error.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace masquerade;

namespace {

// Runs f with every form that this machine has, then restores the previous form.
template <class F>
void in_every_form(F f) {
    std::string before = bf16_form(), form;
    for (const char* name : {"amx", "avx512_bf16", "widened"})
        if (set_bf16_form(name)) {
            form = bf16_form();
            CAPTURE(form);
            f();
        }
    set_bf16_form(before.c_str());
}

// A bf16 matrix in memory, with row and column strides and an offset from a cache line. The memory between its numbers
// contains NaN.
struct Stored {
    std::int64_t rows, columns, row, column, offset;
    std::vector<bfloat16> numbers;

    Stored(std::int64_t r, std::int64_t c, std::int64_t row_step, std::int64_t column_step, std::int64_t first = 0)
        : rows(r),
          columns(c),
          row(row_step),
          column(column_step),
          offset(first),
          numbers(std::size_t(first + r * row_step + c * column_step + 32), bfloat16(NAN)) {
        while (reinterpret_cast<std::uintptr_t>(numbers.data() + offset - first) % 64 != 0) offset++;
    }
    Stored(Stored&&) = default;
    bfloat16& at(std::int64_t i, std::int64_t j) { return numbers[std::size_t(offset + i * row + j * column)]; }
    float at(std::int64_t i, std::int64_t j) const { return numbers[std::size_t(offset + i * row + j * column)]; }
    Stored fill(unsigned salt) {  // the numbers depend on the place in the matrix, not in memory
        for (std::int64_t i = 0; i < rows; i++)
            for (std::int64_t j = 0; j < columns; j++) {
                salt = salt * 1664525u + 1013904223u;
                at(i, j) = bfloat16(float(salt >> 8) / float(1 << 23) - 1.0f);
            }
        return std::move(*this);
    }
    Factor factor(std::int64_t i = 0, std::int64_t j = 0) const {
        return {numbers.data() + offset + i * row + j * column, DType::bf16, row, column};
    }
};

struct Order {
    const char* name;
    bool a, b;  // whether A and B are stored transposed
};
const Order orders[] = {{"NN", false, false}, {"NT", false, true}, {"TN", true, false}, {"TT", true, true}};

Stored stored(std::int64_t rows, std::int64_t columns, bool turned, unsigned salt) {
    return turned ? Stored(rows, columns, 1, rows).fill(salt) : Stored(rows, columns, columns, 1).fill(salt);
}

// The result C. The memory around it and between its rows must not change.
template <class S>
struct Target {
    static constexpr std::int64_t guard = 40, gap = 3;
    std::int64_t rows, columns;
    std::vector<S> numbers;
    S filler;

    Target(std::int64_t m, std::int64_t n, float value)
        : rows(m), columns(n), numbers(std::size_t(2 * guard + m * (n + gap)), S(value)), filler(value) {}
    Product product(bool add = false, const float* bias = nullptr) {
        return {numbers.data() + guard, dtype_of<S>, columns + gap, add, bias};
    }
    S at(std::int64_t i, std::int64_t j) const { return numbers[std::size_t(guard + i * (columns + gap) + j)]; }
    bool untouched() const {
        std::int64_t i = -guard, wrong = 0;
        for (const S& number : numbers) {
            bool inside = i >= 0 && i < rows * (columns + gap) && i % (columns + gap) < columns;
            wrong += !inside && std::memcmp(&number, &filler, sizeof number) != 0;
            i++;
        }
        return wrong == 0;
    }
};

// The product in double, and for each element |row of A| |column of B|.
struct Reference {
    std::int64_t columns;
    std::vector<double> sums, norms;

    Reference(const Stored& a, const Stored& b) : columns(b.columns) {
        std::vector<double> row(std::size_t(a.columns)), column = row;
        for (std::int64_t i = 0; i < a.rows; i++) {
            for (std::int64_t k = 0; k < a.columns; k++) row[std::size_t(k)] = a.at(i, k);
            for (std::int64_t j = 0; j < b.columns; j++) {
                double sum = 0, aa = 0, bb = 0;
                for (std::int64_t k = 0; k < a.columns; k++) {
                    double x = row[std::size_t(k)], y = b.at(k, j);
                    sum += x * y, aa += x * x, bb += y * y;
                }
                sums.push_back(sum), norms.push_back(std::sqrt(aa * bb));
            }
        }
    }

    // Returns the largest error of c, in units of the permitted error. Every product is exact in float. The sums lose
    // about 2^-25 of every partial sum, and the rounding of a C in bf16 loses at most 2^-8 of it.
    template <class S>
    double worst(const Target<S>& c, double start, const float* bias) const {
        double worst = 0;
        for (std::size_t i = 0; i < sums.size(); i++) {
            std::int64_t row = std::int64_t(i) / columns, column = std::int64_t(i) % columns;
            double sum = sums[i] + start + (bias ? bias[column] : 0);
            double bound = std::ldexp(norms[i] + std::fabs(start) + 8, -22);
            if (dtype_of<S> == DType::bf16) bound += std::fabs(sum) / 256;
            double error = std::fabs(double(float(c.at(row, column))) - sum) / bound;
            worst = error > worst || error != error ? error : worst;
        }
        return worst;
    }
};

template <class S>
void check_definition(const Stored& a, const Stored& b, const Reference& reference, const float* bias) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::int64_t m = a.rows, n = b.columns, k = a.columns;
    Target<S> plain(m, n, nan), added(m, n, 3), biased(m, n, nan), both(m, n, 3);
    gemm(m, n, k, a.factor(), b.factor(), plain.product());
    gemm(m, n, k, a.factor(), b.factor(), added.product(true));
    gemm(m, n, k, a.factor(), b.factor(), biased.product(false, bias));
    gemm(m, n, k, a.factor(), b.factor(), both.product(true, bias));
    CHECK(reference.worst(plain, 0, nullptr) <= 1);
    CHECK(reference.worst(added, 3, nullptr) <= 1);
    CHECK(reference.worst(biased, 0, bias) <= 1);
    CHECK(reference.worst(both, 3, bias) <= 1);
    CHECK((plain.untouched() && added.untouched() && biased.untouched() && both.untouched()));
}

std::vector<float> some_bias(std::int64_t n) {
    std::vector<float> bias(std::size_t(n + 1));
    for (std::size_t i = 0; i < bias.size(); i++) bias[i] = float(i % 17) - 8;
    return bias;
}

template <class S>
std::int64_t different(const Target<S>& a, std::int64_t row, std::int64_t column, const Target<S>& part) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < part.rows; i++)
        for (std::int64_t j = 0; j < part.columns; j++) count += !(a.at(row + i, column + j) == part.at(i, j));
    return count;
}

}  // namespace

TEST_CASE("gemm of bf16 agrees with its definition in every form, order and size") {
    const std::int64_t sizes[][3] = {{1, 1, 1},     {2, 31, 32},     {31, 33, 1},    {32, 32, 64},  {33, 65, 127},
                                     {63, 127, 65}, {64, 64, 96},    {65, 129, 2},   {16, 17, 48},  {17, 16, 33},
                                     {48, 48, 31},  {5, 1000, 129},  {13, 17, 1000}, {96, 3, 2600}, {3, 2100, 300},
                                     {40, 70, 700}, {700, 100, 1300}};
    std::vector<float> bias = some_bias(2100);
    for (const auto& size : sizes)
        for (const Order& order : orders) {
            std::string what = text(size[0], " x ", size[1], " x ", size[2], " ", order.name);
            CAPTURE(what);
            Stored a = stored(size[0], size[2], order.a, 1), b = stored(size[2], size[1], order.b, 2);
            Reference reference(a, b);
            in_every_form([&] {
                check_definition<float>(a, b, reference, bias.data());
                check_definition<bfloat16>(a, b, reference, bias.data());
            });
        }
}

TEST_CASE("gemm of bf16: by rows or by columns, any distance, any alignment, the same bits") {
    const std::int64_t m = 70, n = 50, k = 100;
    in_every_form([&] {
        Target<float> plain(m, n, 0);
        Stored a0 = stored(m, k, false, 1), b0 = stored(k, n, false, 2);
        gemm(m, n, k, a0.factor(), b0.factor(), plain.product());
        const std::int64_t strides_a[][3] = {{k + 3, 1, 1}, {128, 1, 0}, {1024, 1, 32}, {1, m + 5, 3}};
        const std::int64_t strides_b[][3] = {{n + 3, 1, 1}, {1, k + 5, 3}};
        for (const auto& sa : strides_a)
            for (const auto& sb : strides_b) {
                CAPTURE(sa[0]);
                CAPTURE(sb[0]);
                Stored a = Stored(m, k, sa[0], sa[1], sa[2]).fill(1), b = Stored(k, n, sb[0], sb[1], sb[2]).fill(2);
                Target<float> c(m, n, 7);
                gemm(m, n, k, a.factor(), b.factor(), c.product());
                CHECK(different(plain, 0, 0, c) == 0);
            }
        // The row stride of A is 0, so that all rows of A are the same.
        Stored row = Stored(1, k, 0, 1).fill(5);
        Target<float> c(m, n, 7), one(1, n, 7);
        gemm(m, n, k, row.factor(), b0.factor(), c.product());
        gemm(1, n, k, row.factor(), b0.factor(), one.product());
        CHECK(different(c, m - 1, 0, one) == 0);
        CHECK_THROWS_WITH_AS(gemm(m, n, k, Stored(m, k, 2 * k, 2).fill(1).factor(), b0.factor(), plain.product()),
                             doctest::Contains("one of the two must be 1"), Error);
    });
}

TEST_CASE("gemm of bf16: the bits of an element depend neither on M, N, threads, place nor a packed copy of B") {
#ifdef __SANITIZE_ADDRESS__
    // With the sanitizer, every access is slow, and more rows only repeat the same kinds of accesses.
    const std::int64_t most = 130;
#else
    const std::int64_t most = 2048;
#endif
    const std::int64_t shapes[][2] = {{40, 400}, {100, 96}, {300, 2100}};
    int before = threads();
    in_every_form([&] {
        for (const Order& order : orders)
            for (const auto& shape : shapes) {
                std::int64_t n = shape[0], k = shape[1];
                Stored a = stored(most, k, order.a, 3), b = stored(k, n, order.b, 4);
                Target<float> whole(most, n, 0);
                Target<bfloat16> rounded(most, n, 0);
                PackedCopy copy;
                Factor constant = b.factor();
                constant.packed = &copy;
                set_threads(1);
                gemm(most, n, k, a.factor(), b.factor(), whole.product());
                gemm(most, n, k, a.factor(), b.factor(), rounded.product());
                for (std::int64_t m :
                     {std::int64_t(1), std::int64_t(2), std::int64_t(8), std::int64_t(17), std::int64_t(64), most})
                    for (int count : {1, 2, 4, 8}) {
                        if (m < 17 && count > 1) continue;
                        std::string what = text(m, " x ", n, " x ", k, " ", order.name, ", ", count, " threads");
                        CAPTURE(what);
                        set_threads(count);
                        std::int64_t row = most - m, column = m == most ? 0 : m % 7, width = n - column;
                        Target<float> c(m, width, 0);
                        gemm(m, width, k, a.factor(row, 0), b.factor(0, column), c.product());
                        CHECK(different(whole, row, column, c) == 0);
                        Target<bfloat16> r(m, width, 0);
                        gemm(m, width, k, a.factor(row, 0), b.factor(0, column), r.product());
                        CHECK(different(rounded, row, column, r) == 0);
                        Target<float> of_copy(m, n, 0);
                        gemm(m, n, k, a.factor(row, 0), constant, of_copy.product());
                        CHECK(different(whole, row, 0, of_copy) == 0);
                        Target<bfloat16> rounded_of_copy(m, n, 0);
                        gemm(m, n, k, a.factor(row, 0), constant, rounded_of_copy.product());
                        CHECK(different(rounded, row, 0, rounded_of_copy) == 0);
                    }
            }
    });
    set_threads(before);
}

TEST_CASE("gemm of bf16: a C of bf16 is the float sum, with bias and what was there, rounded once") {
    const std::int64_t m = 70, n = 90, k = 2700;
    std::vector<float> bias = some_bias(n);
    in_every_form([&] {
        // This form adds the bias and C before the later blocks of K.
        if (std::string(bf16_form()) == "widened") return;
        for (const Order& order : orders) {
            Stored a = stored(m, k, order.a, 5), b = stored(k, n, order.b, 6);
            Target<float> sums(m, n, 0);
            gemm(m, n, k, a.factor(), b.factor(), sums.product());
            Target<bfloat16> c(m, n, 1.5f);
            gemm(m, n, k, a.factor(), b.factor(), c.product(true, bias.data()));
            int wrong = 0;
            for (std::int64_t i = 0; i < m; i++)
                for (std::int64_t j = 0; j < n; j++)
                    wrong += !(c.at(i, j) == bfloat16(sums.at(i, j) + bias[std::size_t(j)] + 1.5f));
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("gemm of bf16: pieces of K added to a C of f32 are the chain of the whole") {
    const std::int64_t m = 50, n = 70, cuts[] = {0, 32, 352, 1312, 1999};
    in_every_form([&] {
        if (std::string(bf16_form()) == "widened") return;  // this form has blocks of K of another size, gemm_depth
        for (const Order& order : orders) {
            Stored a = stored(m, 1999, order.a, 7), b = stored(1999, n, order.b, 8);
            Target<float> whole(m, n, 0.25f), pieces(m, n, 0.25f);
            gemm(m, n, 1999, a.factor(), b.factor(), whole.product(true));
            for (int i = 0; i < 4; i++)
                gemm(m, n, cuts[i + 1] - cuts[i], a.factor(0, cuts[i]), b.factor(cuts[i], 0), pieces.product(true));
            CHECK(different(whole, 0, 0, pieces) == 0);
        }
    });
}

TEST_CASE("gemm of bf16: amx sums as the instruction is described") {
    if (std::string(bf16_form()) != "amx") return;
    const std::int64_t m = 33, n = 47, k = 75;
    Stored a = stored(m, k, false, 9), b = stored(k, n, false, 10);
    Target<float> c(m, n, 0.5f);
    gemm(m, n, k, a.factor(), b.factor(), c.product(true));
    int wrong = 0;
    for (std::int64_t i = 0; i < m; i++)
        for (std::int64_t j = 0; j < n; j++) {
            float sum = 0.5f;
            for (std::int64_t k0 = 0; k0 < k; k0 += 32) {
                float half[2] = {0, 0};
                for (std::int64_t p = k0; p < std::min(k, k0 + 32); p++)
                    half[p % 2] = std::fma(float(a.at(i, p)), float(b.at(p, j)), half[p % 2]);
                sum += half[0] + half[1];
            }
            wrong += !(c.at(i, j) == sum);
        }
    CHECK(wrong == 0);
}

TEST_CASE("gemm of bf16: NaN and infinity reach the elements they belong to and no other") {
    const float infinity = std::numeric_limits<float>::infinity();
    in_every_form([&] {
        for (const Order& order : orders) {
            Stored a = stored(70, 75, order.a, 5), b = stored(75, 50, order.b, 6);
            a.at(3, 74) = bfloat16(NAN);
            a.at(40, 7) = bfloat16(infinity), b.at(7, 9) = bfloat16(0.0f);
            b.at(2, 20) = bfloat16(-infinity), a.at(41, 2) = bfloat16(1.0f), a.at(42, 2) = bfloat16(-1.0f);
            Target<float> c(70, 50, 0);
            Target<bfloat16> r(70, 50, 0);
            gemm(70, 50, 75, a.factor(), b.factor(), c.product());
            gemm(70, 50, 75, a.factor(), b.factor(), r.product());
            int wrong = 0;
            for (int i = 0; i < 70; i++)
                for (int j = 0; j < 50; j++) {
                    bool finite = i != 3 && i != 40 && j != 20;
                    wrong += std::isfinite(c.at(i, j)) != finite;
                    wrong += std::isfinite(float(r.at(i, j))) != finite;
                    wrong += (i == 3) && !(std::isnan(c.at(i, j)) && std::isnan(float(r.at(i, j))));
                }
            CHECK(wrong == 0);
            CHECK(std::isnan(c.at(40, 9)));  // infinity times zero
            CHECK(c.at(41, 20) == -infinity);
            CHECK(float(r.at(42, 20)) == infinity);
        }
    });
}

TEST_CASE("gemm of bf16: no rows, no columns, no depth") {
    in_every_form([&] {
        float c[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {7, 8, 9};
        Factor none{nullptr, DType::bf16, 1, 1};
        gemm(0, 3, 4, none, none, {c, DType::f32, 3});
        gemm(2, 0, 4, none, none, {c, DType::f32, 3});
        CHECK(c[0] == 1);
        gemm(2, 3, 0, none, none, {c, DType::f32, 3, true});
        CHECK(c[5] == 6);
        gemm(2, 3, 0, none, none, {c, DType::f32, 3, false, bias});
        CHECK(c[0] == 7);
        CHECK(c[5] == 9);
    });
}

TEST_CASE("gemm of bf16: many small products at once, one to a thread's piece") {
    const std::int64_t m = 33, n = 40, k = 50;
    in_every_form([&] {
        Stored a = stored(m, k, false, 1), b = stored(k, n, true, 2);
        Target<float> alone(m, n, 0);
        gemm(m, n, k, a.factor(), b.factor(), alone.product());
        std::vector<Target<float>> many(64, Target<float>(m, n, 0));
        parallel_each(64,
                      [&](std::int64_t i) { gemm(m, n, k, a.factor(), b.factor(), many[std::size_t(i)].product()); });
        for (const Target<float>& c : many) CHECK(different(alone, 0, 0, c) == 0);
    });
}

TEST_CASE("gemm of bf16: a form is chosen by its name, under the instruction set that has it") {
    std::string set = instruction_set(), form = bf16_form();
    CHECK_FALSE(set_bf16_form("avx1024_bf16"));
    CHECK(form == bf16_form());
    CHECK(set_bf16_form("widened"));
    CHECK(std::string(bf16_form()) == "widened");
    CHECK(set_bf16_form(form.c_str()));
    CHECK(form == bf16_form());
    CHECK(set_instruction_set("generic"));
    CHECK(std::string(bf16_form()) == "widened");
    set_instruction_set(set.c_str());
    CHECK(form == bf16_form());
}

// SPDX-License-Identifier: MIT
// A matrix product for the tests of the engine's own product: factors of every form, and a comparison with the product
// in double.
#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/emulator.h"
#include "engine/check/ladder.h"

namespace masquerade {

using ladder::number;
using ladder::set_number;

// Numbers on the device. The first number is `shift` numbers behind an address that is a multiple of 256. The memory on
// both sides contains NaN.
struct Numbers {
    DType dtype;
    std::int64_t count, shift;
    Buffer memory;
    static constexpr std::int64_t guard = 256;

    Numbers(DType type, std::int64_t n, std::int64_t shifted)
        : dtype(type),
          count(n),
          shift(shifted),
          memory(std::size_t(n + shifted + 2 * guard) * bytes_of(type), Device::cpu) {
        std::memset(memory.data(), 0xff, bytes());
    }
    std::size_t bytes() const { return std::size_t(count + shift + 2 * guard) * bytes_of(dtype); }
    char* data() const { return static_cast<char*>(memory.data()) + std::size_t(guard + shift) * bytes_of(dtype); }
    View view() const { return {data(), dtype, Device::cpu, {count}, "numbers"}; }
    void set(std::int64_t i, double x) const { set_number(view(), i, x); }
    double operator[](std::int64_t i) const { return number(view(), i).real(); }
    std::string bits(std::int64_t from, std::int64_t n) const {
        return {data() + std::size_t(from) * bytes_of(dtype), std::size_t(n) * bytes_of(dtype)};
    }
    bool guards_intact() const {
        const std::string before(static_cast<char*>(memory.data()), data());
        const std::string after(data() + std::size_t(count) * bytes_of(dtype),
                                static_cast<char*>(memory.data()) + bytes());
        return (before + after).find_first_not_of('\xff') == std::string::npos;
    }
};

// The form of a product: types, storage and options, but not the sizes.
struct Form {
    DType factors = DType::f32, result = DType::f32;
    bool a_transposed = false, b_transposed = false, add = false, bias = false;
    std::int64_t shift = 0;

    std::string name() const {
        return text(name_of(factors), " in ", name_of(result), a_transposed ? ", A transposed" : "",
                    b_transposed ? ", B transposed" : "", add ? ", added" : "", bias ? ", bias" : "",
                    shift ? ", shifted" : "");
    }
};

inline std::vector<Form> all_forms() {
    std::vector<Form> all;
    for (auto [factors, result] :
         {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}})
        for (int bits = 0; bits < 16; bits++)
            all.push_back({factors, result, bool(bits & 1), bool(bits & 2), bool(bits & 4), bool(bits & 8)});
    return all;
}

// The matrices A, B and C and the bias. For given sizes, their numbers are the same in every form.
struct Product {
    Form form;
    std::int64_t m, n, k;
    Numbers a, b, c, bias;

    Product(Form f, std::int64_t rows, std::int64_t columns, std::int64_t depth)
        : form(f),
          m(rows),
          n(columns),
          k(depth),
          a(f.factors, m * k, f.shift),
          b(f.factors, k * n, f.shift),
          c(f.result, m * n, f.shift),
          bias(f.result, n, f.shift) {
        Sequence random(1, "product");
        for (std::int64_t j = 0; j < n; j++) bias.set(j, 2 * random.uniform_double() - 1);
        for (std::int64_t i = 0; i < m * k; i++) a.set(at_a(i / k, i % k), 2 * random.uniform_double() - 1);
        for (std::int64_t i = 0; i < k * n; i++) b.set(at_b(i / n, i % n), 2 * random.uniform_double() - 1);
        for (std::int64_t i = 0; i < m * n && form.add; i++) c.set(i, 2 * random.uniform_double() - 1);
    }

    std::int64_t at_a(std::int64_t i, std::int64_t l) const { return form.a_transposed ? l * m + i : i * k + l; }
    std::int64_t at_b(std::int64_t l, std::int64_t j) const { return form.b_transposed ? j * k + l : l * n + j; }
    Multiplication asked() const {
        return {m,
                n,
                k,
                {a.data(), form.factors, form.a_transposed},
                {b.data(), form.factors, form.b_transposed},
                {c.data(), form.result, form.add},
                form.bias ? bias.data() : nullptr};
    }
    void run(TileSize size = TileSize::fitting) const { fibers::tiled_multiply(asked(), size); }

    // Returns "", or what is wrong; compares each element with the product in double. A float sum of K products, C and
    // a bias has an error of at most one unit in the last place of the magnitudes' sum for each addition. A result in
    // bf16 has an additional error of half a unit of bf16.
    std::string wrong(const std::vector<double>& before) const {
        for (std::int64_t i = 0; i < m; i++)
            for (std::int64_t j = 0; j < n; j++) {
                const double kept = form.add ? before[std::size_t(i * n + j)] : 0, b0 = form.bias ? bias[j] : 0;
                double sum = kept + b0, size = std::abs(kept) + std::abs(b0);
                for (std::int64_t l = 0; l < k; l++) {
                    const double term = a[at_a(i, l)] * b[at_b(l, j)];
                    sum += term, size += std::abs(term);
                }
                const double found = c[i * n + j];
                double bound = double(k + 3) * 0x1p-24 * size;
                if (form.result == DType::bf16) bound += 0x1p-8 * (std::abs(sum) + bound);
                if (!(std::abs(found - sum) <= bound))
                    return text("element (", i, ",", j, ") is ", found, "; expected ", sum, " within ", bound);
            }
        return c.guards_intact() ? "" : "something before or behind C is written";
    }
    std::string run_and_compare(TileSize size) const {
        std::vector<double> before;
        for (std::int64_t i = 0; form.add && i < m * n; i++) before.push_back(c[i]);
        run(size);
        return wrong(before);
    }
};

}  // namespace masquerade

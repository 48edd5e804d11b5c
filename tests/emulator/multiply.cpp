// SPDX-License-Identifier: MIT
// Replaces cuBLASLt if kernels run as fibers: computes a matrix product in a plain loop. Tests with this loop show that
// the engine requests the right products. They show nothing about cuBLASLt, about the calls of cuBLASLt, or about its
// sums. Like cuBLASLt, the loop may refuse a product, if a test wants this.
#include "engine/ops/cuda/multiply.h"

#include <algorithm>
#include <vector>

#include "tests/emulator/emulator.h"

namespace masquerade::emulator {
bool (*refuses_product)(const Multiplication&) = nullptr;
}

namespace masquerade::fibers {
namespace {

// Returns the numbers of the factor as a matrix (rows, columns), row by row, even if the factor is stored transposed.
std::vector<float> numbers(const DeviceFactor& f, std::int64_t rows, std::int64_t columns) {
    std::vector<float> all(std::size_t(rows * columns));
    const std::int64_t step = row_step(f, f.transposed ? rows : columns);
    for (std::int64_t i = 0; i < rows; i++)
        for (std::int64_t j = 0; j < columns; j++) {
            const std::int64_t at = f.transposed ? j * step + i : i * step + j;
            all[std::size_t(i * columns + j)] = f.dtype == DType::f32 ? static_cast<const float*>(f.data)[at]
                                                                      : float(static_cast<const bfloat16*>(f.data)[at]);
        }
    return all;
}

template <class S>
void store_row(const std::vector<float>& sums, const void* biases, const DeviceProduct& c, std::int64_t row) {
    const S* bias = static_cast<const S*>(biases);
    const std::int64_t n = std::int64_t(sums.size());
    S* to = static_cast<S*>(c.data) + row * row_step(c, n);
    for (std::int64_t j = 0; j < n; j++) {
        float sum = sums[std::size_t(j)];
        if (c.add) sum += float(to[j]);
        if (bias) sum += float(bias[j]);
        to[j] = S(sum);
    }
}

// Adds in chunks of 64 numbers, and then adds the sums of the chunks in order, like the op's own column sums.
float sum_of(const float* x, std::int64_t n) {
    float total = 0;
    for (std::int64_t begin = 0; begin < n; begin += 64) {
        float part = 0;
        for (std::int64_t i = begin; i < std::min(begin + 64, n); i++) part += x[i];
        total += part;
    }
    return total;
}

}  // namespace

bool multiply(const Multiplication& p) {
    expect_known(p);
    if (emulator::refuses_product && emulator::refuses_product(p)) return false;
    const std::vector<float> a = numbers(p.a, p.m, p.k), b = numbers(p.b, p.k, p.n);
    std::vector<float> sums(static_cast<std::size_t>(p.n));
    for (std::int64_t i = 0; i < p.m; i++) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (std::int64_t l = 0; l < p.k; l++)
            for (std::int64_t j = 0; j < p.n; j++)
                sums[std::size_t(j)] += a[std::size_t(i * p.k + l)] * b[std::size_t(l * p.n + j)];
        if (p.c.dtype == DType::f32)
            store_row<float>(sums, p.bias, p.c, i);
        else
            store_row<bfloat16>(sums, p.bias, p.c, i);
        if (p.sums) p.sums[i] = sum_of(&a[std::size_t(i * p.k)], p.k);
    }
    return true;
}

}  // namespace masquerade::fibers

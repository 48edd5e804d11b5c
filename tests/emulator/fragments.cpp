// SPDX-License-Identifier: MIT
// Emulates the tensor cores' instruction mma.sync.m16n8k16 for bf16. Every number is read from the lane and register in
// which PTX defines it to be. Products are exact; TensorSums defines how they are added.
#include <algorithm>
#include <climits>
#include <cmath>

#include "tests/emulator/block.h"

namespace masquerade::emulator {
namespace {

// The registers of one lane: a and b are its parts of the factors, and d is its part of the sums.
struct Fragments {
    std::uint32_t a[4], b[2];
    float d[4];
};
Fragments of_lanes[32][32];  // for every warp

float half_of(std::uint32_t pair, int half) {
    const std::uint32_t bits = half ? pair & 0xffff0000u : pair << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Adds `count` products to d, as a tensor core that truncates. Every term is truncated behind bit `bits`, counted from
// the largest exponent of all terms, and the sum is truncated behind bit 24. exponents[k] is the sum of the exponents
// of the factors of product k; the product itself may be almost four times 2^exponents[k]. Before the truncation,
// nothing is rounded, because the arithmetic is in double.
float truncated_sum(float d, const double* products, const int* exponents, int count, int bits) {
    int largest = d == 0 ? INT_MIN : std::ilogb(double(d));
    double sum = d;
    for (int k = 0; k < count; k++) {
        sum += products[k];
        if (products[k] != 0) largest = std::max(largest, exponents[k]);
    }
    if (largest == INT_MIN || !std::isfinite(sum)) return float(sum);
    const double scale = std::ldexp(1.0, bits - 1 - largest);  // makes the kept bits of each term a whole number
    sum = std::trunc(d * scale);
    for (int k = 0; k < count; k++) sum += std::trunc(products[k] * scale);
    sum /= scale;
    if (std::fabs(sum) >= 0x1p128) return std::copysign(INFINITY, float(sum));
    const float nearest = float(sum);
    return std::fabs(double(nearest)) > std::fabs(sum) ? std::nextafter(nearest, 0.0f) : nearest;
}

// Computes d += a b for all lanes of a warp. a is 16 x 16, b is 16 x 8, and d is 16 x 8.
void multiply(Fragments* lanes) {
    float a[16][16], b[16][8], d[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const Fragments& f = lanes[lane];
        const int row = lane / 4, column = lane % 4 * 2;
        for (int half = 0; half < 2; half++) {
            for (int r = 0; r < 4; r++) a[row + r % 2 * 8][column + r / 2 * 8 + half] = half_of(f.a[r], half);
            for (int r = 0; r < 2; r++) b[column + r * 8 + half][row] = half_of(f.b[r], half);
            for (int r = 0; r < 2; r++) d[row + r * 8][column + half] = f.d[2 * r + half];
        }
    }
    const TensorSums sums = settings().tensor_sums;
    const int at_once = sums == TensorSums::as_a100 ? 8 : 16, bits = sums == TensorSums::as_a100 ? 25 : 26;
    for (int m = 0; m < 16; m++) {
        for (int k = 0; k < 16 && sums == TensorSums::rounded; k++)
#pragma omp simd
            for (int n = 0; n < 8; n++) d[m][n] += a[m][k] * b[k][n];
        for (int n = 0; n < 8 && sums != TensorSums::rounded; n++) {
            double products[16];
            int exponents[16];
            for (int k = 0; k < 16; k++) {
                products[k] = double(a[m][k]) * double(b[k][n]);
                exponents[k] = products[k] == 0 ? 0 : std::ilogb(a[m][k]) + std::ilogb(b[k][n]);
            }
            for (int k = 0; k < 16; k += at_once)
                d[m][n] = truncated_sum(d[m][n], products + k, exponents + k, at_once, bits);
        }
    }
    for (int lane = 0; lane < 32; lane++)
        for (int s = 0; s < 4; s++) lanes[lane].d[s] = d[lane / 4 + s / 2 * 8][lane % 4 * 2 + s % 2];
}

}  // namespace

void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b, const char* file, int line) {
    Fragments* lanes = of_lanes[running->warp];
    Fragments& own = lanes[running->lane];
    std::copy(a, a + 4, own.a);
    std::copy(b, b + 2, own.b);
    std::copy(d, d + 4, own.d);
    // The last lane that arrives multiplies for all lanes. If some lanes wait in another call, meet_warp() throws, and
    // no lane gets the sums.
    if ((current_block().warps[std::size_t(running->warp)].meets | 1u << running->lane) == 0xffffffffu) multiply(lanes);
    meet_warp(Exchange::ballot, 0xffffffffu, 1, 0, 32, "mma.sync", {file, line});
    std::copy(own.d, own.d + 4, d);
}

}  // namespace masquerade::emulator

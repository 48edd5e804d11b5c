// SPDX-License-Identifier: MIT
// Lab 10, solved. The tiled product is a small version of the engine's product (engine/ops/cpu/gemm_block.h).
#include "docs/labs/10/lab.h"

#include <algorithm>
#include <vector>

void naive(int M, int N, int K, const float* A, const float* B, float* C) {
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++) sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}

void ordered(int M, int N, int K, const float* A, const float* B, float* C) {
    for (int i = 0; i < M; i++) {
        float* const row = C + i * N;
        std::fill_n(row, N, 0.0f);
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++) row[j] += A[i * K + k] * B[k * N + j];
    }
}

namespace {

// A tile of C has `height` rows of two vectors. Its sums stay in registers: with AVX-512, they take 24 of the 32 vector
// registers; with AVX2, 12 of 16; otherwise, 8 of 16.
#if defined(__AVX512F__)
constexpr int lanes = 16, height = 12;
#elif defined(__AVX2__)
constexpr int lanes = 8, height = 6;
#else
constexpr int lanes = 4, height = 4;
#endif
constexpr int width = 2 * lanes;
constexpr int depth = 320;             // steps of K at a time, so few that rows of A and a panel of B fit the L1 cache
constexpr int stride = depth + lanes;  // of rows of A: not a power of two, so that rows do not share a set of the cache
typedef float Vector __attribute__((vector_size(4 * lanes)));
typedef float AnyAddress __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

Vector load(const float* from) { return *reinterpret_cast<const AnyAddress*>(from); }
void store(float* to, Vector v) { *reinterpret_cast<AnyAddress*>(to) = v; }

// Computes part (height,width) = a (height,steps) b (steps,width).
void multiply_tile(int steps, const float* a, const float* b, float* part) {
    Vector sum[height][2] = {};
    for (int k = 0; k < steps; k++, a++, b += width) {
        const Vector left = load(b), right = load(b + lanes);
#pragma GCC unroll 12
        for (int i = 0; i < height; i++) {
            sum[i][0] += a[i * stride] * left;
            sum[i][1] += a[i * stride] * right;
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < height; i++) {
        store(part + i * width, sum[i][0]);
        store(part + i * width + lanes, sum[i][1]);
    }
}

}  // namespace

// A tile may extend beyond the edge of C. There, it is computed from whatever numbers the copies of A and B contain;
// only the part inside C is added to C.
void tiled(int M, int N, int K, const float* A, const float* B, float* C) {
    const int panels = (N + width - 1) / width;
    std::vector<float> a(height * stride), b(std::size_t(panels * width * depth)), part(height * width);
    std::fill_n(C, M * N, 0.0f);
    for (int k0 = 0; k0 < K; k0 += depth) {
        const int steps = std::min(depth, K - k0);
        for (int k = 0; k < steps; k++)  // copies B into panels of `width` columns
            for (int j0 = 0; j0 < N; j0 += width)
                std::copy_n(B + (k0 + k) * N + j0, std::min(width, N - j0), &b[std::size_t(j0 * depth + k * width)]);
        for (int i0 = 0; i0 < M; i0 += height) {
            const int rows = std::min(height, M - i0);
            for (int i = 0; i < rows; i++) std::copy_n(A + (i0 + i) * K + k0, steps, &a[std::size_t(i * stride)]);
            for (int j0 = 0; j0 < N; j0 += width) {
                const int columns = std::min(width, N - j0);
                multiply_tile(steps, a.data(), &b[std::size_t(j0 * depth)], part.data());
                for (int i = 0; i < rows; i++)
                    for (int j = 0; j < columns; j++) C[(i0 + i) * N + j0 + j] += part[std::size_t(i * width + j)];
            }
        }
    }
}

double flops(int M, int N, int K) { return 2.0 * M * N * K; }
double bytes(int M, int N, int K) { return 4.0 * (double(M) * K + double(K) * N + double(M) * N); }
double bound(double peak, double bandwidth, int M, int N, int K) {
    return std::min(peak, bandwidth * flops(M, N, K) / bytes(M, N, K));
}

__global__ void product_kernel(int M, int N, int K, const Float* A, const Float* B, Float* C) {
    __shared__ Float a[T][T], b[T][T];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * T + y, column = blockIdx.x * T + x;
    float sum = 0;
    for (int k0 = 0; k0 < K; k0 += T) {
        a[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        b[y][x] = k0 + y < K && column < N ? B[(k0 + y) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < T; k++) sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = sum;
}

// SPDX-License-Identifier: MIT
// Multiplies tiles (small matrices in shared memory) and adds the products to sums in the registers of the block's
// 128 threads, for tiled_multiply.cu. Float tiles use the CUDA cores; bf16 tiles use the tensor cores, which multiply
// exactly and truncate sums to floats. Every sum runs in the order of the depth (the index that a product sums over),
// without atomics, so that results are reproducible.
#pragma once
#include "engine/ops/cuda/fragments.cuh"

namespace masquerade::DEVICE {

constexpr int tile_threads = 128;

// A tile in shared memory. Its stride is chosen so that the lanes of a warp access different banks.
template <class T, int M, int N>
struct Tile {
    static constexpr int stride = N + (sizeof(T) == 4 ? 1 : 8);
    alignas(16) T all[M * stride];
    __device__ T& operator()(int i, int j) { return all[i * stride + j]; }
};

// A matrix x(M,N) of sums, spread over the registers of the block's threads. each(f) calls f(i, j, x_ij) for the
// elements of the calling thread. add(a, b, m, n, depth) adds products of the rows of tile a and tile b: x(i, j) += sum
// over k < depth of a(i, k) b(j, k), for i < m and j < n. The other elements of x may get any value. Both tiles must
// contain 0 in the columns from `depth` on.
template <class T, int M, int N>
struct TileSum;

// The sums of float tiles, on the CUDA cores. In thread t, sum[a][b] is the element in row t / 16 + 8 a and column
// t % 16 + 16 b.
template <int M, int N>
struct TileSum<float, M, N> {
    static constexpr int rows = M / 8, columns = N / 16;
    float sum[rows][columns];

    __device__ void clear() {
        for (int a = 0; a < rows; a++)
            for (int b = 0; b < columns; b++) sum[a][b] = 0;
    }
    template <class F>
    __device__ void each(F f) {
        const int i = int(threadIdx.x) / 16, j = int(threadIdx.x) % 16;
#pragma unroll
        for (int a = 0; a < rows; a++)
#pragma unroll
            for (int b = 0; b < columns; b++) f(i + 8 * a, j + 16 * b, sum[a][b]);
    }
    template <int A, int B>
    __device__ void add_some(const float* a, int a_stride, const float* b, int b_stride, int depth) {
        const int i = int(threadIdx.x) / 16, j = int(threadIdx.x) % 16;
#pragma unroll 2
        for (int k = 0; k < depth; k++) {
            float of_a[A], of_b[B];
#pragma unroll
            for (int s = 0; s < A; s++) of_a[s] = a[(i + 8 * s) * a_stride + k];
#pragma unroll
            for (int s = 0; s < B; s++) of_b[s] = b[(j + 16 * s) * b_stride + k];
#pragma unroll
            for (int s = 0; s < A; s++)
#pragma unroll
                for (int t = 0; t < B; t++) sum[s][t] = mul_add(of_a[s], of_b[t], sum[s][t]);
        }
    }
    template <int A>
    __device__ void add_rows(const float* a, int a_stride, const float* b, int b_stride, int n, int depth) {
        if (n <= 16) return add_some<A, 1>(a, a_stride, b, b_stride, depth);
        add_some<A, columns>(a, a_stride, b, b_stride, depth);
    }
    template <class LeftTile, class RightTile>
    __device__ void add(const LeftTile& left, const RightTile& right, int m, int n, int depth) {
        const float *a = left.all, *b = right.all;
        constexpr int a_stride = LeftTile::stride, b_stride = RightTile::stride;
        if (m <= 8) return add_rows<1>(a, a_stride, b, b_stride, n, depth);
        if (m <= 16) return add_rows<2>(a, a_stride, b, b_stride, n, depth);
        add_rows<rows>(a, a_stride, b, b_stride, n, depth);
    }
};

// The sums of bf16 tiles, on the tensor cores. The block's four warps are arranged in `down` rows and `across`
// columns. A warp sums `tiles` tiles of 16 rows and 8 columns, side by side.
template <int M, int N>
struct TileSum<bfloat16, M, N> {
    static constexpr int down = M / 16, across = tile_threads / 32 / down, tiles = N / 8 / across;
    static_assert(down * across * 32 == tile_threads && tiles * across * 8 == N, "four warps cover the tile");
    float sum[tiles][4];

    __device__ static int first_row() { return int(threadIdx.x) / 32 % down * 16; }
    __device__ static int first_column() { return int(threadIdx.x) / 32 / down * tiles * 8; }

    __device__ void clear() {
        for (int t = 0; t < tiles; t++)
            for (int s = 0; s < 4; s++) sum[t][s] = 0;
    }
    template <class F>
    __device__ void each(F f) {
        const int lane = int(threadIdx.x) % 32, i = first_row() + lane / 4, j = first_column() + lane % 4 * 2;
#pragma unroll
        for (int t = 0; t < tiles; t++)
#pragma unroll
            for (int s = 0; s < 4; s++) f(i + s / 2 * 8, j + 8 * t + s % 2, sum[t][s]);
    }
    template <class LeftTile, class RightTile>
    __device__ void add(const LeftTile& left, const RightTile& right, int m, int n, int depth) {
        if (first_row() >= m) return;
        for (int k = 0; k < depth; k += 16) {
            const Areas<bfloat16, LeftTile::stride, false, false> of_left(left.all + first_row() * left.stride + k);
            const auto a = of_left.template at<0, 0>();
#pragma unroll
            for (int tile = 0; tile < tiles; tile += 2) {
                const int column = first_column() + 8 * tile;
                if (column >= n) break;
                const Areas<bfloat16, RightTile::stride, true, false> of_right(right.all + column * right.stride + k);
                const auto b = of_right.template at<0, 0>();
                multiply_matrices(sum[tile], a, b, 0);
                multiply_matrices(sum[tile + 1], a, b, 1);
            }
        }
    }
};

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Multiplies tiles (small matrices in shared memory) and adds the products to sums in the registers of the block's
// 128 threads. The attention kernels and tiled_multiply.cu use these functions. Float tiles use the CUDA cores; bf16
// tiles use the tensor cores, which multiply exactly and add in float. Every sum runs in the order of the depth (the
// index that a product sums over), without atomics, so that results are reproducible.
#pragma once
#include "engine/math/scalar.h"
#include "engine/ops/cuda/kernel.cuh"

namespace masquerade::DEVICE {

constexpr int tile_threads = 128;

// A tile in shared memory. Its stride is chosen so that the lanes of a warp access different banks.
template <class T, int M, int N>
struct Tile {
    static constexpr int stride = N + (sizeof(T) == 4 ? 1 : 8);
    alignas(16) T all[M * stride];
    __device__ T& operator()(int i, int j) { return all[i * stride + j]; }
};

// A tile that a kernel has computed in float and that is a factor of a further product. If T is bf16, it consists of
// two tiles: `low` contains the rounding errors of `high`. Numbers between two products therefore keep more than the
// 8 significant bits of bf16. Only the results are rounded to bf16, when they are stored.
template <class T, int M, int N>
struct FactorTile {
    Tile<T, M, N> high;
    Tile<T, sizeof(T) == 2 ? M : 1, sizeof(T) == 2 ? N : 1> low;
    __device__ void set(int i, int j, float x) {
        high(i, j) = T(x);
        if constexpr (sizeof(T) == 2) low(i, j) = T(x - float(high(i, j)));
    }
};

// Returns how many of the `all` rows (or columns) of a tile must be initialised if a product needs n of them. The
// product also reads some rows after the first n, but uses none of the sums that it computes from them.
__device__ inline int filled(int n, int all) { return n <= 16 ? 16 : all; }

// How a product indexes its two tiles a and b; k counts the depth.
enum class Form {
    rows_by_rows,     // sum over k of a[i][k] b[j][k]
    rows_by_columns,  // sum over k of a[i][k] b[k][j]
    columns,          // sum over k of a[k][i] b[k][j]
};

// A matrix x(M,N) of sums, spread over the registers of the block's threads. each(f) calls f(i, j, x_ij) for the
// elements of the calling thread. add<form>(a, b, m, n, depth) adds the product of tiles a and b to the first m rows
// and n columns of x; the other elements of x may get any value. Both tiles must be initialised as far as filled()
// says, and their numbers beyond the depth must be 0.
template <class T, int M, int N>
struct TileSum;

// The sums of float tiles, on the CUDA cores. In thread t, sum[a][b] is the element in row t / 16 + 8 a and column t
// % 16 + 16 b.
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
    template <Form form, int A, int B>
    __device__ void add_some(const float* a, int a_stride, const float* b, int b_stride, int depth) {
        const int i = int(threadIdx.x) / 16, j = int(threadIdx.x) % 16;
#pragma unroll 2
        for (int k = 0; k < depth; k++) {
            float of_a[A], of_b[B];
#pragma unroll
            for (int s = 0; s < A; s++)
                of_a[s] = form == Form::columns ? a[k * a_stride + i + 8 * s] : a[(i + 8 * s) * a_stride + k];
#pragma unroll
            for (int s = 0; s < B; s++)
                of_b[s] = form == Form::rows_by_rows ? b[(j + 16 * s) * b_stride + k] : b[k * b_stride + j + 16 * s];
#pragma unroll
            for (int s = 0; s < A; s++)
#pragma unroll
                for (int t = 0; t < B; t++) sum[s][t] = mul_add(of_a[s], of_b[t], sum[s][t]);
        }
    }
    template <Form form, int A>
    __device__ void add_rows(const float* a, int a_stride, const float* b, int b_stride, int n, int depth) {
        if (n <= 16) return add_some<form, A, 1>(a, a_stride, b, b_stride, depth);
        add_some<form, A, columns>(a, a_stride, b, b_stride, depth);
    }
    template <Form form, class LeftTile, class RightTile>
    __device__ void add(const LeftTile& left, const RightTile& right, int m, int n, int depth) {
        const float *a = left.all, *b = right.all;
        constexpr int a_stride = LeftTile::stride, b_stride = RightTile::stride;
        if (m <= 8) return add_rows<form, 1>(a, a_stride, b, b_stride, n, depth);
        if (m <= 16) return add_rows<form, 2>(a, a_stride, b, b_stride, n, depth);
        add_rows<form, rows>(a, a_stride, b, b_stride, n, depth);
    }
};

// d += a b on the tensor cores, for matrices a (16,16), b (16,8) and d (16,8). With g = lane / 4 and t = lane % 4, a
// lane passes these elements (PTX manual, mma.sync.m16n8k16, fragments of .bf16):
//     a[0], a[1]  a(g, 2t), a(g + 8, 2t); the upper half of each word is the element in the next column
//     a[2], a[3]  a(g, 2t + 8), a(g + 8, 2t + 8); the upper half of each word is the element in the next column
//     b[0], b[1]  b(2t, g), b(2t + 8, g); the upper half of each word is the element in the next row
//     d           d(g, 2t), d(g, 2t + 1), d(g + 8, 2t), d(g + 8, 2t + 1)
__device__ inline void multiply_fragments(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#ifdef CUDA_EMULATED
    emulator::multiply_fragments(d, a, b);
#elif defined(__CUDA_ARCH__)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Packs two bf16 numbers into one 32-bit word, the first into the lower half. The first form takes x[0] and x[1]; x
// must be aligned to 4 bytes. The second form takes any two numbers.
__device__ inline std::uint32_t two_of(const bfloat16* x) {
#ifdef CUDA_EMULATED
    std::uint32_t both;
    __builtin_memcpy(&both, x, sizeof both);
    return both;
#else
    return *reinterpret_cast<const std::uint32_t*>(x);
#endif
}
__device__ inline std::uint32_t two_of(const bfloat16& low, const bfloat16& high) {
    return std::uint32_t(low.bits) | std::uint32_t(high.bits) << 16;
}

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
    template <Form form, class LeftTile, class RightTile>
    __device__ void add(const LeftTile& left, const RightTile& right, int m, int n, int depth) {
        const bfloat16 *a = left.all, *b = right.all;
        constexpr int a_stride = LeftTile::stride, b_stride = RightTile::stride;
        const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
        const int i = first_row() + g, j = first_column() + g;
        if (first_row() >= m) return;
        for (int k = 0; k < depth; k += 16) {
            std::uint32_t of_a[4], of_b[2];
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const int row = i + s % 2 * 8, column = k + 2 * t + s / 2 * 8;
                of_a[s] = form == Form::columns ? two_of(a[column * a_stride + row], a[(column + 1) * a_stride + row])
                                                : two_of(a + row * a_stride + column);
            }
#pragma unroll
            for (int tile = 0; tile < tiles; tile++) {
                if (first_column() + 8 * tile >= n) break;
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    const int row = k + 2 * t + s * 8, column = j + 8 * tile;
                    of_b[s] = form == Form::rows_by_rows
                                  ? two_of(b + column * b_stride + row)
                                  : two_of(b[row * b_stride + column], b[(row + 1) * b_stride + column]);
                }
                multiply_fragments(sum[tile], of_a, of_b);
            }
        }
    }
};

// Calls TileSum::add() with a FactorTile as the left factor: for its `high` tile and, if T is bf16, for its `low` tile.
template <Form form, class Sum, class T, int M, int N, class RightTile>
__device__ void add_factors(Sum& sum, const FactorTile<T, M, N>& left, const RightTile& right, int m, int n,
                            int depth) {
    sum.template add<form>(left.high, right, m, n, depth);
    if constexpr (sizeof(T) == 2) sum.template add<form>(left.low, right, m, n, depth);
}

}  // namespace masquerade::DEVICE

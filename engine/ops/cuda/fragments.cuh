// SPDX-License-Identifier: MIT
// Functions for GPU instructions that C++ cannot express, used by attention and by tiled_multiply():
//     products on the tensor cores, whose factors are in the registers of the lanes of a warp (fragments)
//     loads of fragments from shared memory
//     copies from global to shared memory that run while the threads do other work
// Each function also has a plain C++ form, which the tests run on the CPU.
//
// The tensor cores multiply bf16 numbers exactly, add the products and truncate the sums to floats. To multiply two
// floats, each float is written as a sum of three bf16 numbers, its parts. The product of the floats is the sum of the
// products of their parts. A product of two parts is left out if it is smaller than the rounding error of the whole
// product.
#pragma once
#include "engine/ops/cuda/each_constant.cuh"
#include "engine/ops/cuda/packet.cuh"

namespace masquerade::DEVICE {

// d = a b + c on the tensor cores, for matrices a (16,16), b (16,8), c and d (16,8); c and d may be the same array.
// With g = lane / 4 and t = lane % 4, a lane passes these elements (PTX manual, mma.sync.m16n8k16, fragments of .bf16):
//     a[0], a[1]  a(g, 2t), a(g + 8, 2t); the upper half of each word is the element in the next column
//     a[2], a[3]  a(g, 2t + 8), a(g + 8, 2t + 8); the upper half of each word is the element in the next column
//     b[0], b[1]  b(2t, g), b(2t + 8, g); the upper half of each word is the element in the next row
//     c, d        d(g, 2t), d(g, 2t + 1), d(g + 8, 2t), d(g + 8, 2t + 1)
__device__ inline void multiply_fragments(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                          const float (&c)[4]) {
#ifdef CUDA_EMULATED
    float sum[4] = {c[0], c[1], c[2], c[3]};
    emulator::multiply_fragments(sum, a, b);
    for (int i = 0; i < 4; i++) d[i] = sum[i];
#elif defined(__CUDA_ARCH__)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#endif
}

// Stores x in to[0] if `first` is set, and y in to[1] if `second` is set. `aligned` says whether `to` is aligned to the
// size of two numbers, so that one instruction can store both.
__device__ inline void store_two(bfloat16* to, float x, float y, bool first, bool second, bool aligned) {
    const std::uint32_t both = two_rounded(x, y);
    if (first && second && aligned) {
        using Word [[gnu::may_alias]] = std::uint32_t;
        *reinterpret_cast<Word*>(to) = both;
    } else {
        if (first) to[0].bits = std::uint16_t(both);
        if (second) to[1].bits = std::uint16_t(both >> 16);
    }
}
__device__ inline void store_two(float* to, float x, float y, bool first, bool second, [[maybe_unused]] bool aligned) {
#if defined(__CUDA_ARCH__)
    if (first && second && aligned) {
        *reinterpret_cast<float2*>(to) = {x, y};
        return;
    }
#endif
    if (first) to[0] = x;
    if (second) to[1] = y;
}

// The number of bf16 numbers whose sum is a number of type S: 1 for bf16, 3 for float.
template <class S>
constexpr int parts = sizeof(S) == 2 ? 1 : 3;

// Four matrices of 8 rows and 8 columns, spread over the lanes of a warp. With g = lane / 4 and t = lane % 4,
// words[p][i] of a lane contains bf16 part p of the elements (g, 2t) and (g, 2t + 1) of matrix i. An element is the sum
// of its parts.
template <class S>
struct Matrices {
    std::uint32_t words[parts<S>][4];

    // Sets the calling lane's two elements of matrix i to x (left) and y (right).
    __device__ void set(int i, float x, float y) {
#pragma unroll
        for (int p = 0; p < parts<S>; p++) {
            const std::uint32_t both = words[p][i] = two_rounded(x, y);
            x -= float_of(both << 16), y -= float_of(both & 0xffff0000u);
        }
    }
};

// A place in a tile in shared memory, whose rows are `stride` numbers apart. at<i, j>() returns the four 8 x 8 matrices
// of the 16 x 16 area that begins i rows below and j columns to the right of the place. Matrix 0 is the upper left
// quarter of the area, and matrix 3 the lower right one. If `right_first` is set, matrix 1 is the upper right and
// matrix 2 the lower left quarter; otherwise matrix 1 is the lower left and matrix 2 the upper right quarter. If
// `transposed` is set, each matrix is transposed. The rows of a bf16 tile must be aligned to 16 bytes. i and j are
// constants, so that they become part of the instruction, and one address serves all areas of a tile.
template <class S, int stride, bool right_first, bool transposed>
class Areas {
#if defined(__CUDA_ARCH__)
    static constexpr bool by_one_instruction = sizeof(S) == 2;
#else
    static constexpr bool by_one_instruction = false;
#endif
    const S* corner_;
    unsigned row_ = 0;  // by_one_instruction: the address of the row that this lane passes, in shared memory

  public:
    __device__ explicit Areas(const S* corner) : corner_(corner) {
#if defined(__CUDA_ARCH__)
        if constexpr (by_one_instruction) {
            // The instruction expects from lane l the address of row l % 8 of matrix l / 8.
            const int lane = int(threadIdx.x) % 32;
            const int down = lane / (right_first ? 16 : 8) % 2, right = lane / (right_first ? 8 : 16) % 2;
            row_ = unsigned(__cvta_generic_to_shared(corner + (lane % 8 + 8 * down) * stride + 8 * right));
        }
#endif
    }
    template <int i, int j>
    __device__ Matrices<S> at() const {
        Matrices<S> all;
        if constexpr (by_one_instruction) {
            std::uint32_t(&w)[4] = all.words[0];
            constexpr int bytes = (i * stride + j) * int(sizeof(S));
            if constexpr (transposed)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
                             : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                             : "r"(row_), "n"(bytes)
                             : "memory");
            else
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
                             : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                             : "r"(row_), "n"(bytes)
                             : "memory");
        } else {
            const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const int down = right_first ? n / 2 : n % 2, right = right_first ? n % 2 : n / 2;
                const S* m = corner_ + (i + 8 * down) * stride + j + 8 * right;
                if constexpr (transposed)
                    all.set(n, float(m[2 * t * stride + g]), float(m[(2 * t + 1) * stride + g]));
                else
                    all.set(n, float(m[g * stride + 2 * t]), float(m[g * stride + 2 * t + 1]));
            }
        }
        return all;
    }
};

// Computes d += a B, for a (16,16) and B (16,8), or d = a B if `begins` is set. The four matrices of `a` are its
// quarters, in the order upper left, lower left, upper right, lower right. `b` contains two matrices B, and `half` (0
// or 1) selects one of them. Matrix 2 * half of `b` is the transpose of the upper 8 rows of B, and the next matrix the
// transpose of the lower 8 rows.
//
// Tensor cores truncate their sums instead of rounding them. If the six products of float parts were added to d on the
// tensor cores, d would be truncated six times, always towards 0. Instead, the six products are first summed
// separately, and d is added last, with rounding.
template <class S>
__device__ void multiply_matrices(float (&d)[4], const Matrices<S>& a, const Matrices<S>& b, int half,
                                  bool begins = false) {
    constexpr bool apart = parts<S> != 1;
    const float zero[4] = {};
    float product[4];
    float(&to)[4] = apart ? product : d;
#pragma unroll
    for (int sum = parts<S> - 1; sum >= 0; sum--)  // adds small products before large ones
#pragma unroll
        for (int p = 0; p <= sum; p++) {
            const bool first = sum == parts<S> - 1 && p == 0;
            const std::uint32_t of_b[2] = {b.words[sum - p][2 * half], b.words[sum - p][2 * half + 1]};
            if (first && (apart || begins))
                multiply_fragments(to, a.words[p], of_b, zero);
            else
                multiply_fragments(to, a.words[p], of_b, to);
        }
    if constexpr (apart) {
#pragma unroll
        for (int i = 0; i < 4; i++) d[i] = begins ? product[i] : d[i] + product[i];
    }
}

// Begins copies of 16 bytes from global memory to shared memory. begin<n>(from, there) copies to element n behind `to`,
// or, if `there` is not set, sets the 16 bytes to 0 and does not read `from`. n is a constant, so that it becomes part
// of the instruction. All addresses must be aligned to 16 bytes. The calling thread may read the bytes after
// wait_for_copies() has returned. Other threads may read the bytes after a barrier that follows wait_for_copies().
template <class S>
class AsyncCopies {
    S* to_;
    unsigned address_ = 0;  // of to_ in shared memory

  public:
    __device__ explicit AsyncCopies(S* to) : to_(to) {
#if defined(__CUDA_ARCH__)
        address_ = unsigned(__cvta_generic_to_shared(to));
#endif
    }
    template <int n>
    __device__ void begin(const S* from) const {
#if defined(__CUDA_ARCH__)
        asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16;" ::"r"(address_), "n"(n * int(sizeof(S))), "l"(from)
                     : "memory");
#else
        begin<n>(from, true);
#endif
    }
    template <int n>
    __device__ void begin(const S* from, bool there) const {
#if defined(__CUDA_ARCH__)
        asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16, %3;" ::"r"(address_), "n"(n * int(sizeof(S))),
                     "l"(from), "r"(there ? 16 : 0)
                     : "memory");
#elif defined(CUDA_EMULATED)
        emulator::expect_aligned(to_ + n, 16), emulator::expect_aligned(from, 16);
        using Word [[gnu::may_alias]] = std::uint32_t;
        auto* to = reinterpret_cast<Word*>(to_ + n);
        for (int i = 0; i < 4; i++) to[i] = there ? reinterpret_cast<const Word*>(from)[i] : 0;
#endif
    }
};
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Returns 2^x, with a relative error of at most 2^-22. On a GPU, returns 0 if 2^x is smaller than 2^-126.
__device__ inline float power_of_2(float x) {
#ifdef HAS_EXP2_INSTRUCTION
    return exp2_instruction(x);
#else
    return std::exp2(x);
#endif
}

}  // namespace masquerade::DEVICE

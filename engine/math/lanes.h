// SPDX-License-Identifier: MIT
// Loops over the numbers of one row, for one CPU thread (OneLane) or for the 32 threads, or lanes, of a CUDA warp
// (WarpLanes). The formulas in row.h are written once, in terms of seven functions: each, store, sum, sums, top, first,
// meet. On the CPU these are simple loops that vectorise. The order in which `sum` adds its terms depends only on the
// length of the row.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "engine/tensor/dtype.h"

// The CUDA keywords exist in nvcc, and in g++ when the tests run kernels on the CPU (CUDA_EMULATED).
#if defined(__CUDACC__) || defined(CUDA_EMULATED)
#define HAS_WARPS
#define HD __host__ __device__ __forceinline__
#else
#define HD inline
#endif
#if defined(__CUDA_ARCH__) || defined(CUDA_EMULATED)
#define IN_KERNEL
#endif

// Defined if the code is compiled for a machine that computes a * b + c with one instruction, which rounds only once.
#if defined(__FMA__) || defined(__CUDA_ARCH__)
#define HAS_FMA
#endif

// On a GPU, exp2_instruction(x) returns 2^x with a relative error of at most 2^-22, and 0 if 2^x is smaller than
// 2^-126.
#ifdef __CUDA_ARCH__
#define HAS_EXP2_INSTRUCTION
namespace masquerade {
HD float exp2_instruction(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
}  // namespace masquerade
#endif

namespace masquerade {

// Returns the real part. In the complex step, which computes derivatives as Im f(x + i h) / h, the imaginary part
// carries the derivative. Comparisons, and the maximum that is subtracted before an exp, therefore use only the real
// part.
HD float real_of(float x) { return x; }
HD double real_of(double x) { return x; }
inline double real_of(const std::complex<double>& x) { return x.real(); }

// Stores `value` in `to` or, if `add` is true, adds it to `to`. Gradients follow the first-writer rule: the first op
// that writes a gradient stores it, and later ops add to it.
template <class S, class A>
HD void put(S& to, A value, bool add) {
    to = add ? S(A(to) + value) : S(value);
}

struct OneLane {};

// The type through which formulas access a row of numbers of type T: x[i] is number i, and x + n is the rest of the
// row, from number n on. This type is the pointer T*, unless RowType is specialised for the type of the lanes.
template <class Lanes, class T>
struct RowType {
    using type = T*;
};
template <class Lanes, class T>
using Row = typename RowType<Lanes, T>::type;

// Calls f(i) for i < n.
template <class F>
HD void each(OneLane, int n, F f) {
    for (int i = 0; i < n; i++) f(i);
}
// Sets to[i] = f(i) or, if `add` is true, to[i] += f(i), for i < n.
template <class N, class S, class F>
HD void store(OneLane, N n, S* to, bool add, F f) {
    using A = decltype(f(n));
    if (add)
        for (N i = 0; i < n; i++) to[i] = S(A(to[i]) + f(i));
    else
        for (N i = 0; i < n; i++) to[i] = S(f(i));
}
#ifndef HAS_WARPS
// store() for bf16. It rounds a tile of 64 numbers at a time, with vector instructions. Rounding the numbers one by one
// would about double the time of a short formula.
template <class N, class F>
void store(OneLane, N n, bfloat16* to, bool add, F f) {
    if constexpr (std::is_same_v<decltype(f(n)), bfloat16>)
        if (!add) {
            for (N i = 0; i < n; i++) to[i] = f(i);
            return;
        }
    constexpr int tile = 64;
    float numbers[tile];
    auto store_some = [&](N begin, int count) {
        if (add)
            for (int k = 0; k < count; k++) numbers[k] = float(to[begin + k]) + float(f(begin + k));
        else
            for (int k = 0; k < count; k++) numbers[k] = float(f(begin + k));
        round_to_bfloat16(numbers, to + begin, count);
    };
    N i = 0;
    for (; i + tile <= n; i += tile) store_some(i, tile);
    if (i < n) store_some(i, int(n - i));
}
#endif
// Two results of one function, such as two sums over one row, a value and its derivative, or a rotated pair of numbers.
template <class A>
struct Two {
    A first, second;
};
// Sets x[i] and y[i] to the two results of f(i), for i < n.
template <class Lanes, class To, class F>
HD void store_two(Lanes lanes, int n, To x, To y, F f) {
    store(lanes, n, x, false, [&](auto i) { return f(i).first; });
    store(lanes, n, y, false, [&](auto i) { return f(i).second; });
}
// Adds up 16 partial sums in pairs, and returns the total. Partial sum k contains the terms i with i mod 16 = k. The 16
// partial sums are independent and can be computed at the same time. The order of the additions is fixed, so the bits
// of the result do not depend on the width of the vectors that the compiler chooses.
template <class A>
HD A sum_of_parts(A (&part)[16]) {
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++) part[k] += part[k + half];
    return part[0];
}
template <class F>
HD auto sum(OneLane, int n, F f) {
    using A = decltype(f(0));
    A part[16] = {};
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) part[k] += f(i + k);
    for (int k = 0; i + k < n; k++) part[k] += f(i + k);
    return sum_of_parts(part);
}
// Returns the sums of f(i) and of g(i) for i < n, in one pass.
template <class F, class G>
HD auto sums(OneLane, int n, F f, G g) {
    using A = decltype(f(0));
    A part_f[16] = {}, part_g[16] = {};
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) part_f[k] += f(i + k), part_g[k] += g(i + k);
    for (int k = 0; i + k < n; k++) part_f[k] += f(i + k), part_g[k] += g(i + k);
    return Two<A>{sum_of_parts(part_f), sum_of_parts(part_g)};
}
// Returns the largest real part of f(i) for i < n; minus infinity if n is 0, NaN if any f(i) is NaN.
template <class F>
HD auto top(OneLane, int n, F f) {
    auto m = decltype(real_of(f(0)))(-INFINITY);
    for (int i = 0; i < n; i++) {
        auto x = real_of(f(i));
        m = x > m || x != x ? x : m;
    }
    return m;
}
// True in exactly one lane. This lane writes the results of which a row has only one, such as its mean.
HD bool first(OneLane) { return true; }
// Barrier of all lanes of a row: afterwards, every lane sees what the other lanes have written.
HD void meet(OneLane) {}

#ifdef HAS_WARPS
struct WarpLanes {};

HD int lane_of(WarpLanes) {
#ifdef IN_KERNEL
    return int(threadIdx.x % 32);
#else
    return 0;
#endif
}
template <class T>
HD T lane_xor(T x, int distance) {
#ifdef IN_KERNEL
    return __shfl_xor_sync(0xffffffffu, x, distance);
#else
    return x;
#endif
}
template <class F>
HD void each(WarpLanes w, int n, F f) {
    for (int i = lane_of(w); i < n; i += 32) f(i);
}
template <class S, class F>
HD void store(WarpLanes w, int n, S* to, bool add, F f) {
    for (int i = lane_of(w); i < n; i += 32) put(to[i], f(i), add);
}
template <class F>
HD auto sum(WarpLanes w, int n, F f) {
    decltype(f(0)) s(0);
    for (int i = lane_of(w); i < n; i += 32) s += f(i);
    for (int d = 16; d > 0; d /= 2) s += lane_xor(s, d);
    return s;
}
template <class F, class G>
HD auto sums(WarpLanes w, int n, F f, G g) {
    return Two<decltype(f(0))>{sum(w, n, f), sum(w, n, g)};
}
template <class F>
HD auto top(WarpLanes w, int n, F f) {
    decltype(f(0)) m = -INFINITY;
    for (int i = lane_of(w); i < n; i += 32) {
        auto x = f(i);
        m = x > m || x != x ? x : m;
    }
    for (int d = 16; d > 0; d /= 2) {
        auto x = lane_xor(m, d);
        m = x > m || x != x ? x : m;
    }
    return m;
}
HD bool first(WarpLanes w) { return lane_of(w) == 0; }
HD void meet(WarpLanes) {
#ifdef IN_KERNEL
    __syncwarp();
#endif
}
#endif

}  // namespace masquerade

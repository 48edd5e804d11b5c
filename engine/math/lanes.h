// SPDX-License-Identifier: MIT
// One row of work, done by lanes: one CPU thread, or the 32 threads of a CUDA warp. The formulas in row.h are written
// once against five verbs: each, sum, top, first, put. On the CPU they are simple loops that vectorise; the order of a
// sum depends on the length of the row alone.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#else
#define HD inline
#endif

// Defined where a b + c is one instruction, rounded once.
#if defined(__FMA__) || defined(__CUDA_ARCH__)
#define HAS_FMA
#endif

namespace masquerade {

// The real part: comparisons and shifts stay off the imaginary axis, so that the complex step passes through them.
HD float real_of(float x) { return x; }
HD double real_of(double x) { return x; }
inline double real_of(const std::complex<double>& x) { return x.real(); }

// The first-writer rule: store, or add to what is there.
template <class S, class A>
HD void put(S& to, A value, bool add) {
    to = add ? S(A(to) + value) : S(value);
}

struct OneLane {};

template <class F>
HD void each(OneLane, int n, F f) {
    for (int i = 0; i < n; i++) f(i);
}
template <class F>
HD auto sum(OneLane, int n, F f) {
    decltype(f(0)) s(0);
    if constexpr (std::is_floating_point_v<decltype(f(0))>) {
#ifndef __CUDACC__
#pragma omp simd reduction(+ : s)
#endif
        for (int i = 0; i < n; i++) s += f(i);
    } else {
        for (int i = 0; i < n; i++) s += f(i);
    }
    return s;
}
// The largest f(i), by real part; minus infinity for n = 0. A NaN anywhere gives NaN.
template <class F>
HD auto top(OneLane, int n, F f) {
    auto m = decltype(real_of(f(0)))(-INFINITY);
    for (int i = 0; i < n; i++) {
        auto x = real_of(f(i));
        m = x > m || x != x ? x : m;
    }
    return m;
}
HD bool first(OneLane) { return true; }

#ifdef __CUDACC__
struct WarpLanes {};

HD int lane_of(WarpLanes) {
#ifdef __CUDA_ARCH__
    return int(threadIdx.x % 32);
#else
    return 0;
#endif
}
template <class T>
HD T lane_xor(T x, int distance) {
#ifdef __CUDA_ARCH__
    return __shfl_xor_sync(0xffffffffu, x, distance);
#else
    return x;
#endif
}
template <class F>
HD void each(WarpLanes w, int n, F f) {
    for (int i = lane_of(w); i < n; i += 32) f(i);
}
template <class F>
HD auto sum(WarpLanes w, int n, F f) {
    decltype(f(0)) s(0);
    for (int i = lane_of(w); i < n; i += 32) s += f(i);
    for (int d = 16; d > 0; d /= 2) s += lane_xor(s, d);
    return s;
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
#endif

}  // namespace masquerade

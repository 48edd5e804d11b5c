// SPDX-License-Identifier: MIT
// Vectors of floats, as wide as the vector registers of the machine for which this file is compiled. An op whose sums
// must have a fixed order computes each sum in a lane of its own, because a lane never depends on other lanes.
#pragma once
#include "engine/math/scalar.h"
#include "engine/tensor/dtype.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

namespace masquerade::cpu::vectors {

#if defined(__AVX512F__)
constexpr int lanes = 16, registers = 32;
#elif defined(__AVX2__)
constexpr int lanes = 8, registers = 16;
#else
constexpr int lanes = 4, registers = 16;
#endif
typedef float Vector __attribute__((vector_size(4 * lanes)));
typedef std::int32_t Integers __attribute__((vector_size(4 * lanes)));
#include "engine/ops/cpu/vector_types.h"

// Load and store a vector. The address must be aligned to the size of a vector.
inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }
inline Vector splat(float x) { return x - Vector{}; }

// widen() loads numbers of a tensor, at any address, as floats. narrow() converts floats to the type of the tensor, and
// stores them. A conversion to bfloat16 rounds to the nearest number, ties to even; NaN stays NaN.
inline Vector widen(const float* p) { return Vector(*reinterpret_cast<const LooseVector*>(p)); }
inline Vector widen(const bfloat16* p) {
    return Vector(__builtin_convertvector(*reinterpret_cast<const Halves*>(p), Bits) << 16);
}
inline void narrow(float* p, Vector v) { *reinterpret_cast<LooseVector*>(p) = v; }
inline void narrow(bfloat16* p, Vector v) {
    Bits u = Bits(v), rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, quiet = (u >> 16) | 0x40u;
    *reinterpret_cast<Halves*>(p) = __builtin_convertvector(v == v ? rounded : quiet, Halves);
}

// Returns a b + c. If mul_add (math/scalar.h) rounds only once on this machine, this function does, too.
inline Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__FMA__)
    return _mm_fmadd_ps(a, b, c);
#else
    return a * b + c;
#endif
}

// Returns the same bits as exp_of(x) (math/scalar.h) for x in [-87, 88]. Below -87, the result is 0, because denormal
// results cost hundreds of cycles. Above 88, the result is meaningless. NaN stays NaN.
inline Vector exp_or_zero(Vector x) {
    Vector shifted = multiply_add(x, splat(1.44269504f), splat(12582912.0f));
    Vector whole = shifted - 12582912.0f;
    Vector power = Vector((Bits(shifted) - (0x4b400000u - 127u)) << 23);
    Vector r = multiply_add(whole, splat(-0.693359375f), x);
    r = multiply_add(whole, splat(2.12194440e-4f), r);
    Vector p = multiply_add(splat(0.00138364208f), r, splat(0.00836913101f));
    p = multiply_add(p, r, splat(0.0416681059f));
    p = multiply_add(p, r, splat(0.166665167f));
    p = multiply_add(p, r, splat(0.49999994f));
    p = multiply_add(r * r, p, r) + 1.0f;
    return x < -87.0f ? Vector{} : p * power;
}

// Returns a mask for the operator ?: of vectors. It selects the lanes whose bit in `bits` is set.
inline Integers lanes_of(unsigned bits) {
    Integers bit;
    for (int i = 0; i < lanes; i++) bit[i] = 1 << i;
    return (bit & std::int32_t(bits)) != 0;
}

}  // namespace masquerade::cpu::vectors

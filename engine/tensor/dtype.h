// SPDX-License-Identifier: MIT
// The four number types that a tensor can have:
//   f32    float, the type for normal use
//   bf16   bfloat16, to store numbers in half the memory; arithmetic is done in float
//   f64    double, for tests: reference results
//   c128   complex numbers of two doubles, for tests: derivatives as Im f(x + i h) / h, the complex step
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace masquerade {

enum class DType : unsigned char { f32, bf16, f64, c128 };

// The upper 16 bits of a float. The conversion rounds to nearest, ties to even; NaN stays NaN.
struct bfloat16 {
    std::uint16_t bits = 0;
    bfloat16() = default;
    constexpr explicit bfloat16(float x) : bits(round(x, __builtin_bit_cast(std::uint32_t, x))) {}
    constexpr operator float() const { return __builtin_bit_cast(float, std::uint32_t(bits) << 16); }

  private:
    // Has no branch, so that the compiler can vectorise a loop of conversions.
    static constexpr std::uint16_t round(float x, std::uint32_t u) {
        std::uint32_t nearest = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x400000u;
        return std::uint16_t((x != x ? quiet : nearest) >> 16);
    }
};

// Rounds n numbers to bfloat16. In a build for processors with AVX512-BF16, numbers smaller than 2^-126 in magnitude
// become 0.
void round_to_bfloat16(const float* from, bfloat16* to, int n);

using complex = std::complex<double>;

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float>      ? DType::f32
                           : std::is_same_v<T, bfloat16> ? DType::bf16
                           : std::is_same_v<T, double>   ? DType::f64
                                                         : DType::c128;

constexpr std::size_t bytes_of(DType t) {
    return t == DType::bf16 ? 2 : t == DType::f32 ? 4 : t == DType::f64 ? 8 : 16;
}

constexpr const char* name_of(DType t) {
    return t == DType::bf16 ? "bf16" : t == DType::f32 ? "f32" : t == DType::f64 ? "f64" : "c128";
}

// Returns the arithmetic type for activations of type t: the type of statistics, biases, losses and latents.
constexpr DType arithmetic_of(DType t) { return t == DType::bf16 ? DType::f32 : t; }

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The four number types a tensor can hold, and bfloat16 as a storage type.
//   f32   the working type                          bf16  storage only: half the memory, arithmetic in float
//   f64   for tests: reference results              c128  for tests: derivatives by complex steps
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>

namespace masquerade {

enum class DType : unsigned char { f32, bf16, f64, c128 };

// The upper 16 bits of a float, rounded to nearest even; NaN stays NaN.
struct bfloat16 {
    std::uint16_t bits = 0;
    bfloat16() = default;
    constexpr explicit bfloat16(float x) : bits(round(x, __builtin_bit_cast(std::uint32_t, x))) {}
    constexpr operator float() const { return __builtin_bit_cast(float, std::uint32_t(bits) << 16); }

  private:
    // Has no branch, so that a loop of conversions is vectorised.
    static constexpr std::uint16_t round(float x, std::uint32_t u) {
        std::uint32_t nearest = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x400000u;
        return std::uint16_t((x != x ? quiet : nearest) >> 16);
    }
};

// Rounds n numbers to bfloat16. With AVX512-BF16, a number smaller than 2^-126 in magnitude becomes 0.
void round_to_bfloat16(const float* from, bfloat16* to, int n);

using complex = std::complex<double>;

template <class T>
struct dtype_of_type;
template <>
struct dtype_of_type<float> {
    static constexpr DType value = DType::f32;
};
template <>
struct dtype_of_type<bfloat16> {
    static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of_type<double> {
    static constexpr DType value = DType::f64;
};
template <>
struct dtype_of_type<complex> {
    static constexpr DType value = DType::c128;
};
template <class T>
constexpr DType dtype_of = dtype_of_type<T>::value;

constexpr std::size_t bytes_of(DType t) {
    return t == DType::bf16 ? 2 : t == DType::f32 ? 4 : t == DType::f64 ? 8 : 16;
}

constexpr const char* name_of(DType t) {
    return t == DType::bf16 ? "bf16" : t == DType::f32 ? "f32" : t == DType::f64 ? "f64" : "c128";
}

// The type of statistics, biases, losses and latents if activations have type t.
constexpr DType arithmetic_of(DType t) { return t == DType::bf16 ? DType::f32 : t; }

}  // namespace masquerade

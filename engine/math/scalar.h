// SPDX-License-Identifier: MIT
// Functions of one number, under the same names for float, double and std::complex<double>.
//     exp_of(x)   log_of(x)   tanh_of(x)   erf_of(x)   sqrt_of(x)   clamp_of(x, low, high)
//     normal_cdf(x)   normal_pdf(x)   sine_and_cosine(x, sine, cosine)
// The float functions have no branches; all but clamp_of and sqrt_of are made of polynomials. A compiler can therefore
// vectorise a plain loop over any of them without -ffast-math; only a loop over sqrt_of needs -fno-math-errno. The bits
// of a result do not depend on the position in the loop. The result for NaN is NaN. The double functions call the
// standard library. The complex functions serve the complex step: with a tiny h, Im f(x + i h) / h is the derivative of
// f. erf_of and normal_cdf neglect terms of order h^2; the other complex functions have no such error.
//
// Largest error in units in the last place over all 2^32 floats, with and without fused multiply-add:
//     exp_of 1.02, 1.00     log_of 0.84, 0.84     tanh_of 1.34, 1.34     erf_of 1.12, 1.29     sqrt_of 0.5
// normal_cdf and normal_pdf are made for activation functions: their absolute error is at most 1e-7, and 3e-7 on a GPU.
// All coefficients are minimax fits of the relative error (Remez), each rounded to float.
#pragma once
#include <cmath>

#include "engine/math/lanes.h"

namespace masquerade {

using Complex = std::complex<double>;

// Returns a * b + c. A float result is rounded only once if the machine has a fused multiply-add instruction. In this
// file, every float product that is a term of a sum is either computed by mul_add or exact. The bits of a float result
// therefore do not depend on which products and sums the compiler fuses.
HD float mul_add(float a, float b, float c) {
#ifdef HAS_FMA
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}
HD double mul_add(double a, double b, double c) { return a * b + c; }
inline Complex mul_add(const Complex& a, const Complex& b, const Complex& c) { return a * b + c; }
HD std::uint32_t bits_of(float x) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
HD float float_of(std::uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
HD float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
HD float with_sign_of(float x, float positive) { return float_of(bits_of(positive) | (bits_of(x) & 0x80000000u)); }
// Returns 2^n for an integer n in [-126, 127]. A negative n is passed as 2^32 + n.
HD float power_of_two(std::uint32_t n) { return float_of((n + 127u) << 23); }

// Returns `yes` if the condition holds, else `no`. The choice is made by a bit mask, because a compiler that preserves
// floating-point traps does not vectorise a conditional expression between two computed floats.
HD float choose(bool condition, float yes, float no) {
    std::uint32_t mask = 0u - std::uint32_t(condition);
    return float_of((bits_of(yes) & mask) | (bits_of(no) & ~mask));
}

// Returns x if its real part is in [low, high], else the nearer bound; NaN stays NaN.
HD float clamp_of(float x, float low, float high) { return choose(x < low, low, choose(x > high, high, x)); }
HD double clamp_of(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
inline Complex clamp_of(const Complex& x, double low, double high) {
    return x.real() < low ? low : x.real() > high ? high : x;
}

// Returns c0 + c1 x + c2 x^2 + ..., by Horner's rule.
HD float polynomial(float, float c0) { return c0; }
template <class... More>
HD float polynomial(float x, float c0, More... more) {
    return mul_add(polynomial(x, more...), x, c0);
}

// Returns exp(r) and sets n, where exp(x) = 2^n exp(r) with an integer n and |r| <= ln(2)/2. n is x / ln 2, rounded:
// after 1.5 * 2^23 is added to x / ln 2, the low bits of the float are this integer. ln 2 is split into the sum of two
// constants. The first constant has only nine significant bits, so that its product with n is exact.
HD float exp_reduced(float x, std::uint32_t& n) {
    float shifted = mul_add(x, 1.44269504f, 12582912.0f);
    float whole = shifted - 12582912.0f;
    n = bits_of(shifted) - 0x4b400000u;
    float r = mul_add(whole, 2.12194440e-4f, mul_add(whole, -0.693359375f, x));
    float p = polynomial(r, 0.49999994f, 0.166665167f, 0.0416681059f, 0.00836913101f, 0.00138364208f);
    return mul_add(r * r, p, r) + 1.0f;
}
// Returns exp(x) for |x| <= 87. In this range, the result neither overflows nor is subnormal.
HD float exp_inside(float x) {
    std::uint32_t n;
    float p = exp_reduced(x, n);
    return p * power_of_two(n);
}
HD float exp_of(float x) {
    std::uint32_t n;
    float p = exp_reduced(clamp_of(x, -104.0f, 89.0f), n);
    std::uint32_t half = std::uint32_t(std::int32_t(n) >> 1);
    // 2^n may be outside the range of float, so p is multiplied by two powers. The first product is exact.
    return p * power_of_two(half) * power_of_two(n - half);
}

// With x = 2^k m, m in [sqrt(1/2), sqrt 2), f = m - 1 and a polynomial P:   log x = k ln 2 + f - f^2/2 + f^3 P(f)
HD float log_of(float x) {
    bool tiny = x < 0x1p-126f;
    float scaled = x * choose(tiny, 0x1p23f, 1.0f);
    std::uint32_t shifted = bits_of(scaled) - 0x3f3504f3u;  // 0x3f3504f3: the bits of sqrt(1/2)
    float k = float(std::int32_t(shifted) >> 23) - choose(tiny, 23.0f, 0.0f);
    float f = float_of((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float square = f * f;
    float p = polynomial(f, 0.333333135f, -0.250001669f, 0.200022221f, -0.16659373f, 0.142096385f, -0.125490785f,
                         0.121105984f, -0.109189399f, 0.0532318056f);
    float tail = mul_add(square * f, p, k * -2.12194440e-4f);
    float y = mul_add(k, 0.693359375f, f + mul_add(square, -0.5f, tail));
    y = choose(x < INFINITY, y, x);
    return choose(x > 0.0f, y, choose(x == 0.0f, -INFINITY, NAN));
}

// tanh is computed for a = |x|, and then gets the sign of x. If a < 0.625, tanh a = a + a^3 P(a^2) with a polynomial P.
// For larger a, tanh a = 1 - 2 / (exp(2a) + 1), which is 1 in float if a >= 9.02.
HD float tanh_of(float x) {
    float a = magnitude(x);
    float square = a * a;
    float p = polynomial(square, -0.333332807f, 0.133314058f, -0.0537365153f, 0.0206281673f, -0.0056922962f);
    float small = mul_add(a * square, p, a);
    float large = 1.0f - 2.0f / (exp_inside(2.0f * choose(a > 10.0f, 10.0f, a)) + 1.0f);
    return with_sign_of(x, choose(a < 0.625f, small, large));
}

// erf is computed for a = |x|, and then gets the sign of x. If a < 0.9375, erf a = a + a P(a^2) with a polynomial P.
// For larger a, erf a = 1 - exp(-Q(a)), where the polynomial Q approximates -log(1 - erf). This is 1 in float
// if a >= 3.92.
HD float erf_of(float x) {
    float a = magnitude(x);
    float square = a * a;
    float p = polynomial(square, 0.128379166f, -0.376126289f, 0.112836257f, -0.0268557407f, 0.00519246049f,
                         -0.000805080403f, 8.00277485e-05f);
    float small = mul_add(a, p, a);
    float q = polynomial(choose(a > 3.95f, 3.95f, a), 0.000211312406f, 1.12761116f, 0.637290597f, 0.103836656f,
                         -0.022181211f, 0.00303175999f, -0.000194769746f);
    float large = 1.0f - exp_inside(-q);
    return with_sign_of(x, choose(a < 0.9375f, small, large));
}

// Returns 2^x for x in [-126, 127], and 0 for x = -127. It is computed as 2^n 2^r with an integer n and |r| <= 1/2. A
// GPU computes it with one instruction.
HD float exp2_inside(float x) {
#ifdef HAS_EXP2_INSTRUCTION
    return exp2_instruction(x);
#else
    float shifted = x + 12582912.0f;
    float r = x - (shifted - 12582912.0f);
    float p =
        polynomial(r, 1.0f, 0.693147182f, 0.240226477f, 0.0555035993f, 0.00961850584f, 0.00133908063f, 0.000153264642f);
    return p * power_of_two(bits_of(shifted) - 0x4b400000u);
#endif
}

// Returns the standard normal distribution function Phi(x) = (1 + erf(x / sqrt 2)) / 2. With a = |x|, the function
// computes Phi(-a) = 2^-Q(a), where Q is a polynomial, and Phi(a) = 1 - Phi(-a).
HD float normal_cdf(float x) {
    float q = polynomial(magnitude(x), 1.0f, 1.15110612f, 0.459196806f, 0.0525418185f, -0.00714615965f, 0.000213760766f,
                         0.000148523977f, -3.01645377e-05f, 1.95353209e-06f);
    float below = exp2_inside(-choose(q > 127.0f, 127.0f, q));
    return choose(x > 0.0f, 1.0f - below, below);
}
// The standard normal density exp(-x^2 / 2) / sqrt(2 pi), computed as 2^t / sqrt(2 pi) with t = -log2(e) x^2 / 2.
HD float normal_pdf(float x) {
    float t = x * x * -0.721347520f;  // the factor is -log2(e) / 2
    return 0.398942280f * exp2_inside(choose(t < -127.0f, -127.0f, t));
}

// Computes sin and cos of n quarter turns plus f turns, |f| <= 1/8. The quarter turns only swap sine and cosine and
// change signs.
HD void sine_and_cosine_of_quarters(std::uint32_t n, float f, float& sine, float& cosine) {
    float square = f * f;
    float s = f * polynomial(square, 6.28318548f, -41.3418655f, 81.6256256f, -76.7749557f);
    float p = polynomial(square, -19.7392082f, 64.9391403f, -85.4231186f, 58.5612183f);
    float c = mul_add(square, p, 1.0f);
    bool odd = (n & 1u) != 0;
    sine = float_of(bits_of(choose(odd, c, s)) ^ (n & 2u) << 30);
    cosine = float_of(bits_of(choose(odd, s, c)) ^ ((n + 1u) & 2u) << 30);
}
// Computes sin and cos of 2 pi u, u in [0, 1], each with a relative error below 2^-23. u is split exactly into n/4 + f,
// with an integer n and |f| <= 1/8.
HD void sine_and_cosine_of_turns(float u, float& sine, float& cosine) {
    float shifted = mul_add(u, 4.0f, 12582912.0f);
    sine_and_cosine_of_quarters(bits_of(shifted) & 3u, mul_add(shifted - 12582912.0f, -0.25f, u), sine, cosine);
}
// Computes sin and cos of x = n pi/2 + r. pi/2 is the sum of three constants, of which the first two have so few bits
// that their products with n are exact for |x| < 10^4. In this range, the absolute error is at most 1.8e-7.
HD void sine_and_cosine(float x, float& sine, float& cosine) {
    float shifted = mul_add(x, 0.636619772f, 12582912.0f), n = shifted - 12582912.0f;
    float r = mul_add(n, -7.54978995e-8f, mul_add(n, -4.83751297e-4f, mul_add(n, -1.5703125f, x)));
    sine_and_cosine_of_quarters(bits_of(shifted) & 3u, r * 0.159154943f, sine, cosine);
}
// The result is correctly rounded. gcc vectorises this function only with -fno-math-errno.
HD float sqrt_of(float x) { return std::sqrt(x); }

HD double exp_of(double x) { return std::exp(x); }
HD double exp2_inside(double x) { return std::exp2(x); }
HD double log_of(double x) { return std::log(x); }
HD double tanh_of(double x) { return std::tanh(x); }
HD double erf_of(double x) { return std::erf(x); }
HD double sqrt_of(double x) { return std::sqrt(x); }
HD double normal_cdf(double x) { return 0.5 * std::erfc(x * -0.7071067811865476); }
HD double normal_pdf(double x) { return 0.3989422804014327 * std::exp(-0.5 * x * x); }
HD void sine_and_cosine(double x, double& sine, double& cosine) { sine = std::sin(x), cosine = std::cos(x); }

inline Complex exp_of(const Complex& x) { return std::exp(x); }
inline Complex exp2_inside(const Complex& x) { return std::exp(0.6931471805599453 * x); }
inline Complex log_of(const Complex& x) { return std::log(x); }
inline Complex tanh_of(const Complex& x) { return std::tanh(x); }
inline Complex sqrt_of(const Complex& x) { return std::sqrt(x); }
// erf(a + i h) = erf(a) + i h 2/sqrt(pi) exp(-a^2) + O(h^2)
inline Complex erf_of(const Complex& x) {
    double a = x.real();
    return {std::erf(a), x.imag() * 1.1283791670955126 * std::exp(-a * a)};
}
inline Complex normal_pdf(const Complex& x) { return 0.3989422804014327 * std::exp(-0.5 * x * x); }
inline void sine_and_cosine(const Complex& x, Complex& sine, Complex& cosine) {
    sine = std::sin(x), cosine = std::cos(x);
}
inline Complex normal_cdf(const Complex& x) { return {normal_cdf(x.real()), x.imag() * normal_pdf(x.real())}; }

}  // namespace masquerade

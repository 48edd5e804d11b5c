// SPDX-License-Identifier: MIT
// Compares the float functions with the double functions of the C library, over a sample of all floats and at special
// values. Also compares their results inside and outside of a vectorised loop, and the complex functions with the
// derivatives that they must compute.
#include "engine/math/features.h"
#include "engine/math/point.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "doctest/doctest.h"

using namespace masquerade;

// Returns the difference of y and the exact value. The unit is the distance between the two floats around the exact
// value (unit in the last place).
static double ulps(float y, double exact) {
    if (std::isnan(exact)) return std::isnan(y) ? 0 : INFINITY;
    if (std::isinf(float(exact))) return y == float(exact) ? 0 : INFINITY;
    if (exact == 0) return y == 0 && std::signbit(y) == std::signbit(exact) ? 0 : INFINITY;
    int exponent;
    std::frexp(exact, &exponent);
    double error = std::fabs(y - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
    return std::isnan(error) ? INFINITY : error;
}

// Returns the largest error over every `stride`-th float, including denormals, infinities and NaN.
template <class F, class G>
static double worst_ulps(F f, G exact, std::uint64_t stride = 1009) {
    double worst = 0;
    for (std::uint64_t bits = 0; bits < 1ull << 32; bits += stride) {
        float x = float_of(std::uint32_t(bits));
        worst = std::max(worst, ulps(f(x), exact(double(x))));
    }
    return worst;
}

TEST_CASE("float functions are within 1.5 units in the last place, everywhere") {
    CHECK(worst_ulps([](float x) { return exp_of(x); }, [](double x) { return std::exp(x); }) <= 1.1);
    CHECK(worst_ulps([](float x) { return log_of(x); }, [](double x) { return std::log(x); }) <= 1.1);
    CHECK(worst_ulps([](float x) { return tanh_of(x); }, [](double x) { return std::tanh(x); }) <= 1.5);
    CHECK(worst_ulps([](float x) { return erf_of(x); }, [](double x) { return std::erf(x); }) <= 1.5);
    CHECK(worst_ulps([](float x) { return sqrt_of(x); }, [](double x) { return std::sqrt(x); }) <= 0.5001);
}

TEST_CASE("float functions where they change form") {
    // Tests every float near the points where tanh (5/8) and erf (15/16) change their formulas, and near 1, where a
    // logarithm loses digits.
    double worst = 0;
    for (std::uint32_t step = 0; step < 40000; step++) {
        float a = float_of(bits_of(0.625f) - 20000 + step), b = float_of(bits_of(0.9375f) - 20000 + step);
        float c = float_of(bits_of(1.0f) - 20000 + step);
        worst = std::max({worst, ulps(tanh_of(a), std::tanh(double(a))), ulps(erf_of(b), std::erf(double(b))),
                          ulps(log_of(c), std::log(double(c)))});
    }
    CHECK(worst <= 1.5);
}

// Returns the largest difference over every `stride`-th float, except infinities.
template <class F, class G>
static double worst_difference(F f, G exact, std::uint64_t stride = 1009) {
    double worst = 0;
    for (std::uint64_t bits = 0; bits < 1ull << 32; bits += stride) {
        float x = float_of(std::uint32_t(bits));
        if (std::isinf(x)) continue;
        double error = std::isnan(x) ? (std::isnan(f(x)) ? 0 : INFINITY) : std::fabs(f(x) - exact(double(x)));
        worst = error <= worst ? worst : error;
    }
    return worst;
}

TEST_CASE("the normal distribution is within 1e-7 everywhere, and gelu with it") {
    CHECK(worst_difference([](float x) { return normal_cdf(x); }, [](double x) { return normal_cdf(x); }) <= 1e-7);
    CHECK(worst_difference([](float x) { return normal_pdf(x); }, [](double x) { return normal_pdf(x); }) <= 1e-7);
    CHECK(normal_cdf(0.0f) == 0.5f);
    CHECK(normal_cdf(20.0f) == 1);
    CHECK(normal_cdf(-20.0f) == 0);
    CHECK(normal_cdf(INFINITY) == 1);
    CHECK(normal_cdf(-INFINITY) == 0);
    CHECK(normal_pdf(INFINITY) == 0);
    auto inside = [](auto f) { return [f](auto x) { return f(std::fabs(x) >= 1e3 ? decltype(x)(1) : x); }; };
    auto share = [](auto f) {  // divides by |x| if it is larger than 1
        return [f](auto x) { return f(x) / std::max(decltype(x)(1), std::fabs(x)); };
    };
    auto value = share(inside([](auto x) { return Gelu::value(x); }));
    auto slope = inside([](auto x) { return Gelu::slope(x); });
    auto tanh_value = share(inside([](auto x) { return GeluTanh::value(x); }));
    auto tanh_slope = inside([](auto x) { return GeluTanh::slope(x); });
    CHECK(worst_difference(value, value) <= 2e-7);
    CHECK(worst_difference(slope, slope) <= 2e-7);
    CHECK(worst_difference(tanh_value, tanh_value) <= 2e-7);
    CHECK(worst_difference(tanh_slope, tanh_slope) <= 4e-7);
    for (float large : {20.0f, 1e4f, 1e30f, 3e38f}) {
        CHECK(Gelu::value(large) == large);
        CHECK(Gelu::value(-large) == 0);
        CHECK(Gelu::slope(large) == 1);
        CHECK(Gelu::slope(-large) == 0);
        CHECK(GeluTanh::value(large) == large);
        CHECK(std::fabs(GeluTanh::value(-large)) <= 1e-30f * large);
        CHECK(GeluTanh::slope(large) == 1);
        CHECK(std::fabs(GeluTanh::slope(-large)) <= 1e-30f * large);
    }
}

TEST_CASE("sine and cosine are within 2e-7 up to 1e4, and complex ones carry their derivatives") {
    auto in_reach = [](auto f) { return [f](auto x) { return f(std::fabs(x) > 1e4 ? decltype(x)(1) : x); }; };
    auto sine = in_reach([](auto x) {
        decltype(x) s, c;
        return sine_and_cosine(x, s, c), s;
    });
    auto cosine = in_reach([](auto x) {
        decltype(x) s, c;
        return sine_and_cosine(x, s, c), c;
    });
    CHECK(worst_difference(sine, sine, 101) <= 2e-7);
    CHECK(worst_difference(cosine, cosine, 101) <= 2e-7);
    CHECK(std::isnan(sine(NAN)));
    Complex s, c;
    sine_and_cosine(Complex(0.7, 1e-30), s, c);
    CHECK(std::fabs(s.imag() * 1e30 - std::cos(0.7)) <= 1e-15);
    CHECK(std::fabs(c.imag() * 1e30 + std::sin(0.7)) <= 1e-15);
}

// softplus2(0) is 1, because the weights of Luna require it. Small results are right to the last digits, too.
TEST_CASE("softplus of base 2") {
    CHECK(softplus2(0.0f).first == 1);
    CHECK(softplus2(0.0f).second == 0.5f);
    double worst = 0, slope = 0;
    for (float t = -100; t < 100; t += 0.01f) {
        const double e = std::exp2(-double(std::fabs(t))), most = std::fmax(t, 0) + std::log1p(e) / std::log(2.0);
        worst = std::max(worst, std::fabs(softplus2(t).first / most - 1));
        slope = std::max(slope, std::fabs(softplus2(t).second * (1 + std::exp2(-double(t))) - 1));
    }
    CHECK(worst <= 5e-7);
    CHECK(slope <= 5e-7);
    CHECK(softplus2(1e30f).first == 1e30f);
    CHECK(softplus2(-INFINITY).first <= 1e-37f);
    CHECK(std::isnan(softplus2(NAN).first));
}

TEST_CASE("special values of float functions") {
    const float inf = INFINITY, least = std::numeric_limits<float>::denorm_min();
    CHECK(exp_of(0.0f) == 1);
    CHECK(exp_of(-inf) == 0);
    CHECK(exp_of(-1e30f) == 0);
    CHECK(exp_of(-103.0f) == least);
    CHECK(exp_of(88.72f) < inf);
    CHECK(exp_of(88.73f) == inf);
    CHECK(exp_of(inf) == inf);
    CHECK(log_of(1.0f) == 0);
    CHECK(log_of(0.0f) == -inf);
    CHECK(log_of(-0.0f) == -inf);
    CHECK(log_of(inf) == inf);
    CHECK(std::isnan(log_of(-least)));
    CHECK(std::isnan(log_of(-inf)));
    CHECK(std::fabs(log_of(least) + 103.278929903f) <= 1e-5f);
    for (float (*f)(float) : {+[](float x) { return tanh_of(x); }, +[](float x) { return erf_of(x); }}) {
        CHECK(f(inf) == 1);
        CHECK(f(-inf) == -1);
        CHECK(f(-20.0f) == -1);
        CHECK(std::signbit(f(-0.0f)));
        CHECK(!std::signbit(f(0.0f)));
        CHECK(std::fabs(f(least)) > 0);
        CHECK(f(-0.7f) == -f(0.7f));
    }
    for (float nan : {std::nanf(""), -std::nanf("")}) {
        CHECK(std::isnan(exp_of(nan)));
        CHECK(std::isnan(log_of(nan)));
        CHECK(std::isnan(tanh_of(nan)));
        CHECK(std::isnan(erf_of(nan)));
        CHECK(std::isnan(sqrt_of(nan)));
        CHECK(std::isnan(clamp_of(nan, -1.0f, 1.0f)));
    }
    CHECK(std::isnan(sqrt_of(-1.0f)));
}

template <class F>
static void check_same_in_loop(F f) {
    std::vector<float> x(1021), y(x.size());
    for (std::size_t i = 0; i < x.size(); i++) x[i] = 1e-3f + 0.013f * float(i);
    for (std::size_t from = 0; from < 17; from++) {  // the end of the vectorised loop moves
        std::size_t n = x.size() - 16 * from;
        for (std::size_t i = from; i < n; i++) y[i] = f(x[i]);
        std::size_t different = 0;
        for (std::size_t i = from; i < n; i++) {
            volatile float alone = x[i];
            different += bits_of(f(alone)) != bits_of(y[i]);
        }
        CHECK(different == 0);
    }
}

TEST_CASE("an element's bits do not depend on its place in a loop") {
    check_same_in_loop([](float x) { return exp_of(x); });
    check_same_in_loop([](float x) { return log_of(x); });
    check_same_in_loop([](float x) { return tanh_of(x); });
    check_same_in_loop([](float x) { return erf_of(x); });
    check_same_in_loop([](float x) { return sqrt_of(x); });
    check_same_in_loop([](float x) { return normal_cdf(x); });
    check_same_in_loop([](float x) { return normal_pdf(x); });
}

TEST_CASE("clamp") {
    CHECK(clamp_of(2.0f, -1.0f, 1.0f) == 1.0f);
    CHECK(clamp_of(-INFINITY, -1.0f, 1.0f) == -1.0f);
    CHECK(clamp_of(0.5f, -1.0f, 1.0f) == 0.5f);
    CHECK(clamp_of(-2.0, -1.0, 1.0) == -1.0);
    CHECK(clamp_of(Complex(0.5, 1e-30), -1.0, 1.0) == Complex(0.5, 1e-30));
    CHECK(clamp_of(Complex(2, 1e-30), -1.0, 1.0) == Complex(1, 0));
}

TEST_CASE("complex functions carry the derivative") {
    const double h = 1e-30;
    for (double x : {-3.0, -0.7, -1e-3, 0.2, 1.0, 2.5, 6.0}) {
        CAPTURE(x);
        auto check = [&](Complex y, double value, double derivative) {
            CHECK(std::fabs(y.real() - value) <= 1e-15 * std::fabs(value) + h);
            CHECK(std::fabs(y.imag() / h - derivative) <= 2e-15 * std::fabs(derivative));
        };
        Complex z(x, h);
        double cosh = std::cosh(x), root_pi = std::sqrt(std::acos(-1.0));
        check(exp_of(z), std::exp(x), std::exp(x));
        check(tanh_of(z), std::tanh(x), 1 / (cosh * cosh));
        check(erf_of(z), std::erf(x), 2 / root_pi * std::exp(-x * x));
        check(normal_cdf(z), normal_cdf(x), std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)));
        check(normal_pdf(z), normal_pdf(x), -x * normal_pdf(x));
        if (x < 0) continue;
        check(log_of(z), std::log(x), 1 / x);
        check(sqrt_of(z), std::sqrt(x), 0.5 / std::sqrt(x));
    }
}

TEST_CASE("dropout of a number: kept from the threshold on, and scaled") {
    CHECK(dropout(3.f, 7u, 7u, 2.f) == 6.f);
    CHECK(dropout(3.f, 8u, 7u, 2.f) == 6.f);
    CHECK(dropout(3.f, 6u, 7u, 2.f) == 0.f);
    CHECK(dropout(3.f, 0u, 0u, 1.f) == 3.f);
}

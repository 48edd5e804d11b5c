// SPDX-License-Identifier: MIT
// Compares the von Mises-Fisher distribution with closed forms, known values, identities of its moments, and the
// moments of draws by its quantile.
#include "models/latent/sphere.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

using namespace masquerade;

static const double pi = 3.14159265358979323846;

TEST_CASE("surfaces of spheres") {
    CHECK(std::fabs(log_sphere_surface(2) - std::log(2 * pi)) <= 1e-15);
    CHECK(std::fabs(log_sphere_surface(3) - std::log(4 * pi)) <= 1e-15);
    CHECK(std::fabs(log_sphere_surface(4) - std::log(2 * pi * pi)) <= 1e-15);
    CHECK(std::fabs(SphereDistribution(4, 1).log_uniform_density() + std::log(2 * pi * pi)) <= 1e-15);
}

TEST_CASE("mean and KL of the von Mises-Fisher distribution have the known values") {
    struct Known {
        int d;
        double kappa, mean, kl;
    };
    for (Known known : {Known{16, 16, .6277, 3.926},
                        {16, 32, .7899, 7.582},
                        {16, 64, .8888, 12.003},
                        {50, 35, .5171, 7.743},
                        {32, 13, .3569, 2.173},
                        {32, 32, .6228, 7.775},
                        {64, 64, .6204, 15.473},
                        {50, 80, .7383, 19.515}}) {
        CAPTURE(known.d);
        CAPTURE(known.kappa);
        SphereDistribution vmf(known.d, known.kappa);
        CHECK(std::fabs(vmf.mean() - known.mean) <= 0.5e-4);
        CHECK(std::fabs(vmf.kl() - known.kl) <= 0.5e-3);
    }
}

// Returns E[w] = I_(d/2)(kappa) / I_(d/2-1)(kappa) by the continued fraction of the ratio of Bessel functions.
static double bessel_ratio(int d, double kappa) {
    double ratio = 0;
    for (int i = 20000; i >= 0; i--) ratio = 1 / (2 * (d / 2.0 + i) / kappa + ratio);
    return ratio;
}

TEST_CASE("normaliser, mean and KL agree with the Bessel functions") {
    for (int d : {2, 3, 4, 16, 17, 64, 512})
        for (double kappa : {1e-3, 1.0, 13.0, 64.0, 300.0, 1000.0}) {
            CAPTURE(d);
            CAPTURE(kappa);
            SphereDistribution vmf(d, kappa);
            double mean = bessel_ratio(d, kappa);
            CHECK(std::fabs(vmf.mean() - mean) <= 1e-12);
            CHECK(std::fabs(vmf.kl() - (vmf.log_density(mean) - vmf.log_uniform_density())) <= 1e-11);
            if (kappa > 500) continue;  // the Bessel functions of the standard library overflow
            double order = d / 2.0 - 1;
            double log_normaliser =
                order * std::log(kappa) - d / 2.0 * std::log(2 * pi) - std::log(std::cyl_bessel_i(order, kappa));
            if (std::isfinite(log_normaliser)) CHECK(std::fabs(vmf.log_normaliser() - log_normaliser) <= 1e-11);
        }
}

TEST_CASE("in three dimensions everything has a closed form") {
    for (double kappa : {0.5, 5.0, 50.0, 1000.0}) {
        CAPTURE(kappa);
        SphereDistribution vmf(3, kappa);
        double tiny = std::exp(-2 * kappa);
        CHECK(std::fabs(vmf.mean() - ((1 + tiny) / (1 - tiny) - 1 / kappa)) <= 1e-13);
        double log_normaliser = std::log(kappa / (2 * pi * (1 - tiny))) - kappa;
        CHECK(std::fabs(vmf.log_normaliser() - log_normaliser) <= 1e-14 * kappa + 1e-13);
        double worst = 0;
        for (int i = 1; i < 200; i++)
            for (double share : {i / 200.0, std::pow(0.83, i)})  // down to 1e-16
                worst = std::fmax(worst,
                                  std::fabs(vmf.quantile(share) - (1 + std::log(share + (1 - share) * tiny) / kappa)));
        CHECK(worst <= 1e-11);
    }
}

// (w + 1) / 2 has the distribution Beta(a, b), with a = (d-1)/2 + kappa and b = (d-1)/2 (De Cao & Aziz 2020, section
// 2).
TEST_CASE("the power-spherical distribution has the moments and the KL of its Beta distribution") {
    const auto digamma = [](double x) {  // the recurrence up to x = 30, then the asymptotic series
        double sum = 0;
        for (; x < 30; x++) sum -= 1 / x;
        const double r = 1 / (x * x);
        return sum + std::log(x) - 1 / (2 * x) - r * (1 / 12.0 - r * (1 / 120.0 - r * (1 / 252.0 - r / 240)));
    };
    for (int d : {2, 3, 16, 64})
        for (double kappa : {0.5, 13.0, 110.0, 1000.0}) {
            CAPTURE(d);
            CAPTURE(kappa);
            const SphereDistribution power(d, kappa, SphereKind::power_spherical);
            const double b = (d - 1) / 2.0, a = b + kappa;
            const double log_normaliser =
                -(a + b) * std::log(2) - b * std::log(pi) - std::lgamma(a) + std::lgamma(a + b);
            const double kl =
                log_normaliser + kappa * (std::log(2) + digamma(a) - digamma(a + b)) + log_sphere_surface(d);
            CHECK(std::fabs(power.mean() - kappa / (a + b)) <= 1e-11);
            CHECK(std::fabs(power.log_normaliser() - log_normaliser) <= 1e-10 * (1 + std::fabs(log_normaliser)));
            CHECK(std::fabs(power.kl() - kl) <= 1e-9 * (1 + kl));
            CHECK(std::fabs(power.log_density(0.25) - log_normaliser - kappa * std::log(1.25)) <=
                  1e-10 * (1 + std::fabs(log_normaliser)));
            double m = 0, v = 0;
            const int even = 20000;
            for (int i = 0; i < even; i++) {
                const double w = power.quantile((i + 0.5) / even) - power.mean();
                m += w / even, v += w * w / even;
            }
            const double variance = 4 * a * b / ((a + b) * (a + b) * (a + b + 1));
            CHECK(std::fabs(m) <= 1e-4 * std::sqrt(variance));
            CHECK(std::fabs(v - variance) <= 2e-3 * variance);
        }
}

TEST_CASE("in two dimensions without concentration the angle is uniform") {
    SphereDistribution circle(2, 0);
    CHECK(circle.kl() <= 1e-14);
    CHECK(std::fabs(circle.mean()) <= 1e-14);
    CHECK(std::fabs(circle.log_density(0.3) - circle.log_uniform_density()) <= 1e-14);
    double worst = 0;
    for (int i = 1; i < 1000; i++)
        worst = std::fmax(worst, std::fabs(circle.quantile(i / 1000.0) + std::cos(pi * i / 1000.0)));
    CHECK(worst <= 1e-10);
}

TEST_CASE("the quantile inverts the distribution function") {
    // Computes the probability of values below w by Simpson's rule over theta, with w = cos theta. The engine does not
    // use this variable.
    for (SphereKind kind : {SphereKind::vmf, SphereKind::power_spherical})
        for (int d : {2, 5, 16, 64})
            for (double kappa : {1.0, 32.0, 1000.0}) {
                CAPTURE(d);
                CAPTURE(kappa);
                SphereDistribution vmf(d, kappa, kind);
                double log_slice = log_sphere_surface(d - 1);
                auto density = [&](double theta) {
                    double log_density = log_slice + vmf.log_density(std::cos(theta));
                    return std::exp(log_density) * std::pow(std::sin(theta), d - 2);
                };
                for (double share : {0.001, 0.1, 0.5, 0.9, 0.999}) {
                    double top = std::acos(vmf.quantile(share)), above = 0;
                    const int n = 2000;
                    for (int i = 0; i <= n; i++)
                        above += density(top * i / n) * (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) * top / n / 3;
                    CHECK(std::fabs(above - (1 - share)) <= 1e-8);
                }
            }
}

TEST_CASE("w and the KL move with log kappa as two distributions a little apart say") {
    for (SphereKind kind : {SphereKind::vmf, SphereKind::power_spherical})
        for (int d : {2, 5, 32, 128})
            for (double kappa : {0.5, 16.0, 110.0, 5000.0})
                for (int fineness : {8, 1}) {
                    CAPTURE(d);
                    CAPTURE(kappa);
                    CAPTURE(fineness);
                    const double step = 1e-4;
                    const SphereDistribution here(d, kappa, kind, fineness), less(d, kappa * std::exp(-step), kind),
                        more(d, kappa * std::exp(step), kind);
                    const double kl = (more.kl() - less.kl()) / (2 * step);
                    CHECK(std::fabs(here.kl_by_log_kappa() - kl) <= 1e-6 * std::fmax(1, kl));
                    for (double share : {1e-6, 0.001, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6}) {
                        CAPTURE(share);
                        const double w = (more.quantile(share) - less.quantile(share)) / (2 * step);
                        CHECK(std::fabs(here.at_share(share).by_log_kappa - w) <=
                              (fineness == 8 ? 2e-6 : 2e-4) * std::fmax(0.01, w));
                        if (fineness == 1)
                            CHECK(std::fabs(here.quantile(share) -
                                            SphereDistribution(d, kappa, kind).quantile(share)) <= 1e-5);
                    }
                }
}

TEST_CASE("the quantile rises from end to end") {
    for (SphereKind kind : {SphereKind::vmf, SphereKind::power_spherical})
        for (int d : {2, 3, 16, 1000})
            for (double kappa : {0.0, 1e-4, 32.0, 1000.0, 1e8}) {
                CAPTURE(d);
                CAPTURE(kappa);
                SphereDistribution vmf(d, kappa, kind);
                bool rises = true;
                double last = -1;
                for (double l = -45; l <= 45; l += 0.003) {
                    double w = vmf.quantile(1 / (1 + std::exp(-l)));
                    rises = rises && w >= last && w <= 1;
                    last = w;
                }
                CHECK(rises);
                CHECK(vmf.quantile(uniform(0)) < vmf.quantile(uniform(0xffffffff)));
            }
}

TEST_CASE("samples of w have the moments of the distribution") {
    for (int d : {2, 3, 16, 64})
        for (double kappa : {0.0, 13.0, 32.0, 1000.0}) {
            CAPTURE(d);
            CAPTURE(kappa);
            SphereDistribution vmf(d, kappa);
            double mean = vmf.mean();
            double variance = kappa == 0 ? 1.0 / d : 1 - mean * mean - (d - 1) * mean / kappa;
            // Evenly spaced u give a nearly exact integral over u.
            const int even = 20000;
            double m = 0, v = 0;
            for (int i = 0; i < even; i++) {
                double w = vmf.quantile((i + 0.5) / even) - mean;
                m += w / even;
                v += w * w / even;
            }
            CHECK(std::fabs(m) <= 1e-4 * std::sqrt(variance));
            CHECK(std::fabs(v - variance) <= 2e-3 * variance);
            // Random u give draws.
            const int draws = 20000;
            Sequence sequence(1, "vmf", std::uint32_t(d), std::uint32_t(kappa));
            double sum = 0, square = 0;
            for (int i = 0; i < draws; i++) {
                double w = vmf.quantile(sequence.uniform()) - mean;
                sum += w / draws;
                square += w * w / draws;
            }
            CHECK(std::fabs(sum) <= 5 * std::sqrt(variance / draws));
            CHECK(std::fabs(square / variance - 1) <= 0.1);
        }
}

TEST_CASE("a wrong von Mises-Fisher distribution is refused") {
    CHECK_THROWS_AS(SphereDistribution(1, 1), Error);
    CHECK_THROWS_AS(SphereDistribution(16, -1), Error);
    CHECK_THROWS_AS(SphereDistribution(16, NAN), Error);
    CHECK_THROWS_AS(SphereDistribution(16, INFINITY), Error);
}

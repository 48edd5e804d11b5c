// SPDX-License-Identifier: MIT
// Computes integrals and a table of quantiles by quadrature. Two changes of variable make all functions smooth. First,
// the cosine w = mu.z is replaced by t = artanh w. The density of t is proportional to
// exp(-kappa s(t)) / cosh(t)^(d-1) with some s(t) >= 0, and has no singularity for d >= 2. Second, the probability u is
// replaced by l = log(u / (1 - u)). The u-quantile of t is almost linear in l, since both tails of the density of t are
// exponential. Cubic interpolation between equidistant values of l is therefore accurate everywhere, also in the tails.
#include "models/latent/sphere.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/error.h"

namespace masquerade {

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr int panels_each = 1024;  // panels of the quadrature per unit of fineness
constexpr int knots_each = 512;    // knots of the quantile table per unit of fineness
constexpr double reach = 38;       // the knots cover log(u / (1 - u)) from -reach to reach: u from 3e-17 to 1 - 3e-17
constexpr double fall = 100;       // the quadrature stops where the density is e^-100 of its maximum

// The density of t = artanh w, divided by its maximum, where w is the cosine between a sample and the mean direction in
// R^d. The density is proportional to exp(-kappa s(t)) / cosh(t)^(d-1). fallen(t) returns s(t), which is 1 - w for von
// Mises-Fisher and log 2 - log(1 + w) for power-spherical.
struct Density {
    SphereKind kind;
    double kappa, power;  // power = d - 1 in R^d
    // mode: the t with the largest density. peak: log of exp(-kappa s(t)) / cosh(t)^(d-1) at the mode.
    double mode, peak;

    Density(SphereKind k, int d, double concentration)
        : kind(k),
          kappa(concentration),
          power(d - 1),
          mode(kind == SphereKind::vmf ? std::asinh(2 * kappa / power) / 2 : std::log1p(2 * kappa / power) / 2),
          peak(log_raw(mode)) {}
    double fallen(double t) const {
        return kind == SphereKind::vmf ? 2 / (1 + std::exp(2 * t))
               : t < 0                 ? std::log1p(std::exp(2 * t)) - 2 * t
                                       : std::log1p(std::exp(-2 * t));
    }
    double log_raw(double t) const {
        double a = std::fabs(t), log_cosh = a + std::log1p(std::exp(-2 * a)) - std::log(2.0);
        return -kappa * fallen(t) - power * log_cosh;
    }
    double operator()(double t) const { return std::exp(log_raw(t) - peak); }
    // Returns the t at which the log density is `fall` below its maximum. This t is above the mode if step > 0, else
    // below it.
    double edge(double step) const {
        while (log_raw(mode + step) - peak > -fall) step *= 2;
        double near = 0, far = step;
        for (int i = 0; i < 20; i++) {
            double middle = (near + far) / 2;
            (log_raw(mode + middle) - peak > -fall ? near : far) = middle;
        }
        return mode + far;
    }
};

// Returns the integrals over [a, b] of the numbers that f(t), an array, holds, by five-point Gauss-Legendre quadrature.
template <class F>
auto integrals(const F& f, double a, double b) {
    const double root = 2 * std::sqrt(10.0 / 7), share = 13 * std::sqrt(70.0);
    double c = (a + b) / 2, h = (b - a) / 2;
    double inner = h * std::sqrt(5 - root) / 3, outer = h * std::sqrt(5 + root) / 3;
    auto sums = f(c);
    const auto inner_left = f(c - inner), inner_right = f(c + inner);
    const auto outer_left = f(c - outer), outer_right = f(c + outer);
    for (std::size_t i = 0; i < sums.size(); i++)
        sums[i] = h * (128.0 / 225 * sums[i] + (322 + share) / 900 * (inner_left[i] + inner_right[i]) +
                       (322 - share) / 900 * (outer_left[i] + outer_right[i]));
    return sums;
}
template <class F>
double integral(const F& f, double a, double b) {
    return integrals([&](double t) { return std::array<double, 1>{f(t)}; }, a, b)[0];
}

// The distribution function of t at the ends of the panels of the quadrature. It is summed from both sides, so that
// small probabilities in both tails are precise.
struct Distribution {
    Density density;
    double start, width;   // panel j is [start + j width, start + (j+1) width]
    double mass = 0;       // the integral of `density`, whose maximum is 1
    double fallen = 0;     // the mean of density.fallen(t)
    double spread = 0;     // the variance of density.fallen(t)
    double distance = 0;   // the mean of 1 - tanh t, that is, of 1 - w
    Numbers below, above;  // the probabilities that t is below and above each panel end
    // Integrals of f(t) (s(t) - E[s]) over all t below each panel end, and over all t above it. f is the normalised
    // density, s(t) = density.fallen(t), and E[s] is the mean of s.
    Numbers moved_below, moved_above;

    Distribution(const Density& f, int panels)
        : density(f), below(panels + 1), above(below), moved_below(below), moved_above(below) {
        start = f.edge(-0.01);
        width = (f.edge(0.01) - start) / panels;
        Numbers panel, of_fallen;
        for (int j = 0; j < panels; j++) {
            const auto parts = [&](double t) {
                const double p = f(t), s = f.fallen(t);
                return std::array<double, 4>{p, p * s, p * s * s, p * 2 / (1 + std::exp(2 * t))};
            };
            const auto [of_density, of_s, of_square, of_distance] = integrals(parts, at(j), at(j + 1));
            panel.push_back(of_density);
            of_fallen.push_back(of_s);
            spread += of_square;
            distance += of_distance;
            mass += panel.back();
            fallen += of_fallen.back();
        }
        fallen /= mass;
        spread = spread / mass - fallen * fallen;
        distance /= mass;
        for (int j = 0; j < panels; j++) {
            below[j + 1] = below[j] + panel[j] / mass;
            moved_below[j + 1] = moved_below[j] + (of_fallen[j] - fallen * panel[j]) / mass;
        }
        for (int j = panels; j > 0; j--) {
            above[j - 1] = above[j] + panel[j - 1] / mass;
            moved_above[j - 1] = moved_above[j] + (of_fallen[j - 1] - fallen * panel[j - 1]) / mass;
        }
    }
    // Returns dt / d log kappa at a fixed probability F(t), where f is the normalised density of t, and F its
    // distribution function. The derivative is -(dF / d log kappa) / f. dF / dkappa is the integral of -f (s - E[s]) up
    // to t, where s(t) = density.fallen(t), and E[s] is the mean of s.
    double by_log_kappa(double t) const {
        const int j = std::clamp(int((t - start) / width), 0, int(below.size()) - 2);
        const auto moved = [&](double x) { return density(x) * (density.fallen(x) - fallen) / mass; };
        const double left = at(j) < density.mode ? moved_below[j] + integral(moved, at(j), t)
                                                 : -(moved_above[j + 1] + integral(moved, t, at(j + 1)));
        return density.kappa * left * mass / density(t);
    }
    double at(int j) const { return start + j * width; }

    // Returns the u-quantile of t for the u with log(u / (1 - u)) = l. Finds the panel by binary search, then t by
    // Newton's method.
    double quantile(double l) const {
        double tail = 1 / (1 + std::exp(std::fabs(l)));
        const Numbers& side = l < 0 ? below : above;
        auto not_past = [&](double share) { return l < 0 ? share <= tail : share >= tail; };
        auto past = std::partition_point(side.begin(), side.end(), not_past);
        int j = std::clamp(int(past - side.begin()) - 1, 0, int(side.size()) - 2);
        double left = at(j), right = left + width, t = left + width / 2;
        double wanted = std::fabs(tail - side[j]) * mass;
        for (int i = 0; i < 20; i++) {
            double next = std::clamp(t + (wanted - integral(density, left, t)) / density(t), left, right);
            if (std::fabs(next - t) < 1e-15 * std::max(1.0, std::fabs(t))) break;
            t = next;
        }
        return t;
    }
};

}  // namespace

double log_sphere_surface(int dimensions) {
    double half = dimensions / 2.0;
    return std::log(2.0) + half * std::log(pi) - std::lgamma(half);
}

SphereDistribution::SphereDistribution(int dimensions, double kappa, SphereKind kind, int fineness)
    : kind_(kind), dimensions_(dimensions), kappa_(kappa), knots_(fineness * knots_each) {
    const char* name = kind == SphereKind::vmf ? "von Mises-Fisher" : "power-spherical";
    if (dimensions < 2) throw Error(name, ": ", dimensions, " dimensions; a direction needs at least 2");
    if (!(kappa >= 0 && kappa <= largest_kappa))
        throw Error(name, ": kappa is ", kappa, "; it must lie in [0, ", largest_kappa, "]");

    Density density(kind, dimensions, kappa);
    Distribution distribution(density, fineness * panels_each);
    distance_ = distribution.distance;
    log_surface_ = log_sphere_surface(dimensions);
    // Computes the normaliser C of the density C h(w), where w is the cosine between a sample and mu. 1 / C = h(1) S I,
    // where S is the surface area of the unit sphere in R^(d-1), and I is the integral over w of
    // h(w) / h(1) (1 - w^2)^((d-3)/2). log_mass is log I.
    double log_mass = std::log(distribution.mass) + density.peak;
    log_normaliser_ = -log_weight(1) - log_mass - log_sphere_surface(dimensions - 1);
    // KL = log C + E[log h(w)] + log of the surface of the unit sphere in R^d. log h(w) = log h(1) - kappa s(t), where
    // s(t) = density.fallen(t); log C contains -log h(1), so log h(1) cancels.
    kl_ = std::max(0.0, log_surface_ - log_sphere_surface(dimensions - 1) - log_mass - kappa * distribution.fallen);
    kl_by_log_kappa_ = kappa * kappa * distribution.spread;

    const int knot_count = knots_.size();
    for (int i = 0; i < knot_count; i++) {
        double l = -reach + 2 * reach * i / (knot_count - 1), share = 1 / (1 + std::exp(std::fabs(l)));
        double t = distribution.quantile(l);
        knots_[i] = {t, share * (1 - share) * distribution.mass / density(t), distribution.by_log_kappa(t)};
    }
}

double SphereDistribution::log_weight(double cosine) const {
    return kappa_ == 0 ? 0 : kappa_ * (kind_ == SphereKind::vmf ? cosine : std::log1p(std::max(cosine, -1 + 1e-12)));
}

SphereDistribution::Sample SphereDistribution::at_share(double u) const {
    const int knot_count = knots_.size();
    const double step = 2 * reach / (knot_count - 1);
    double l = std::log(u) - std::log1p(-u);
    double x = std::clamp((l + reach) / step, 0.0, double(knot_count - 1));
    int i = std::min(int(x), knot_count - 2);
    const Knot &a = knots_[i], &b = knots_[i + 1];
    const double s = x - i, r = 1 - s;
    // Cubic Hermite interpolation between two knots, from their values and slopes.
    const auto cubic = [&](double from, double slope_from, double to, double slope_to) {
        return r * r * ((1 + 2 * s) * from + s * slope_from) + s * s * ((1 + 2 * r) * to - r * slope_to);
    };
    const auto slope_at = [&](int k) {
        return (knots_[std::min(k + 1, knot_count - 1)].by_log_kappa - knots_[std::max(k - 1, 0)].by_log_kappa) / 2;
    };
    const double w = std::tanh(cubic(a.t, step * a.slope, b.t, step * b.slope));
    return {w, (1 - w * w) * cubic(a.by_log_kappa, slope_at(i), b.by_log_kappa, slope_at(i + 1))};
}

}  // namespace masquerade

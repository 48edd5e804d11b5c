// SPDX-License-Identifier: MIT
// The mixture of Gaussians: what EM promises, a known mixture found again, the density against its own draws and
// against quadrature, rows that no density has, and the same bits for any number of threads.
#include "models/density/mixture.h"

#include <cmath>
#include <cstring>

#include "engine/math/normal.h"
#include "engine/ops/cpu/parallel.h"
#include "models/density/cholesky.h"
#include "models/density/directions.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

View view_of(const std::vector<float>& numbers, std::int64_t columns) {
    View v;
    v.data = const_cast<float*>(numbers.data());
    v.shape = {std::int64_t(numbers.size()) / columns, columns};
    return v;
}

// n draws of a mixture, row after row.
std::vector<float> draws(const GaussianMixture& g, int n, std::uint64_t seed, double temperature = 1) {
    std::vector<float> rows;
    for (int i = 0; i < n; i++)
        for (double x : g.draw(make_stream(seed, "test", 0), std::uint32_t(i), temperature))
            rows.push_back(float(x));
    return rows;
}

double mean_of(const std::vector<double>& numbers) {
    double sum = 0;
    for (double x : numbers) sum += x / double(numbers.size());
    return sum;
}

// Three components in four dimensions, with a covariance that is far from round.
GaussianMixture known() {
    return GaussianMixture({0.5, 0.3, 0.2}, {4, 0, 0, 1, -4, 1, 0, 0, 0, -4, 3, -1},
                           {1, 0, 0, 0, 0.8, 0.5, 0, 0, -0.3, 0.2, 0.7, 0, 0.1, 0.4, -0.6, 0.9});
}

// M components in D dimensions around the unit sphere, as latents lie.
GaussianMixture around_spheres(int M, int D, double deviation, std::uint64_t seed, double reach = 1.2) {
    Sequence random(seed, "mixture");
    std::vector<double> means, factor(std::size_t(D * D), 0.0);
    for (int i = 0; i < M * D; i++) means.push_back(reach * (2 * random.uniform_double() - 1));
    for (int i = 0; i < D; i++)
        for (int j = 0; j <= i; j++)
            factor[std::size_t(i * D + j)] =
                deviation * (i == j ? 1 : 0.4 * (2 * random.uniform_double() - 1));
    return GaussianMixture(std::vector<double>(std::size_t(M), 1.0 / M), means, factor);
}

void onto_spheres(std::vector<float>& rows, int Z) {
    for (std::size_t at = 0; at < rows.size(); at += std::size_t(Z)) {
        double square = 0;
        for (int i = 0; i < Z; i++)
            square += double(rows[at + std::size_t(i)]) * double(rows[at + std::size_t(i)]);
        for (int i = 0; i < Z; i++)
            rows[at + std::size_t(i)] = float(double(rows[at + std::size_t(i)]) / std::sqrt(square));
    }
}

std::vector<float> uniform_directions(int n, int K, int Z, std::uint64_t seed) {
    std::vector<float> rows;
    for (std::uint32_t i = 0; rows.size() < std::size_t(n * K * Z); i++) {
        FourNormals e = normal4(make_stream(seed, "uniform", 0).at(i, 0, 0));
        for (int j = 0; j < 4 && rows.size() < std::size_t(n * K * Z); j++) rows.push_back(e[j]);
    }
    onto_spheres(rows, Z);
    return rows;
}

double log_uniform(int K, int Z) {  // of directions: 1 / surface of each sphere
    return -K * (std::log(2.0) + 0.5 * Z * std::log(3.14159265358979323846) - std::lgamma(0.5 * Z));
}

}  // namespace

TEST_CASE("mixture: no round of EM makes the objective fall") {
    for (std::uint64_t seed = 1; seed <= 6; seed++) {
        std::vector<float> x = draws(known(), 700, seed);
        MixtureOptions o;
        o.components = 1 + int(seed * 4 % 11);
        o.rounds = 25;
        o.tolerance = -1;  // all of them
        o.strength = seed % 2 ? 0.5 : 30;
        o.seed = seed;
        std::vector<double> objective;
        GaussianMixture::fit(view_of(x, 4), o, &objective);
        REQUIRE(objective.size() == 25);
        for (std::size_t i = 1; i < objective.size(); i++) {
            CAPTURE(i);
            CHECK(objective[i] >= objective[i - 1] - 2e-6);
        }
        CHECK(objective.back() > objective.front());
    }
}

TEST_CASE("mixture: finds a known one again") {
    const GaussianMixture truth = known();
    std::vector<float> x = draws(truth, 8000, 3);
    GaussianMixture best;
    double most = -INFINITY;
    for (std::uint64_t seed = 1; seed <= 8; seed++) {  // EM finds a local maximum: the best of some starts
        MixtureOptions o;
        o.components = 3;
        o.rounds = 60;
        o.tolerance = 1e-7;
        o.strength = 1;
        o.seed = seed;
        std::vector<double> objective;
        GaussianMixture g = GaussianMixture::fit(view_of(x, 4), o, &objective);
        if (objective.back() > most) most = objective.back(), best = g;
    }
    for (int k = 0; k < 3; k++) {
        int nearest = 0;
        double least = INFINITY;
        for (int j = 0; j < 3; j++) {
            double square = 0;
            for (int i = 0; i < 4; i++) {
                double d = best.means()[std::size_t(j * 4 + i)] - truth.means()[std::size_t(k * 4 + i)];
                square += d * d;
            }
            if (square < least) least = square, nearest = j;
        }
        CHECK(least < 0.02);
        CHECK(std::fabs(best.weights()[std::size_t(nearest)] - truth.weights()[std::size_t(k)]) < 0.02);
    }
    for (int i = 0; i < 16; i++)
        CHECK(std::fabs(best.factor()[std::size_t(i)] - truth.factor()[std::size_t(i)]) < 0.04);
    std::vector<float> fresh = draws(truth, 4000, 4);
    double lost =
        mean_of(truth.log_densities(view_of(fresh, 4))) - mean_of(best.log_densities(view_of(fresh, 4)));
    CHECK(std::fabs(lost) < 0.02);
}

TEST_CASE("mixture: the density is that of the formula, and integrates to 1") {
    const GaussianMixture g({0.25, 0.75}, {-1, 0.5, 1, -0.5}, {0.6, 0, -0.5, 0.4});
    const double determinant = 0.6 * 0.4, step = 0.05;
    std::vector<float> grid;
    for (double a = -7; a < 7; a += step)
        for (double b = -7; b < 7; b += step) grid.insert(grid.end(), {float(a), float(b)});
    std::vector<double> log_p = g.log_densities(view_of(grid, 2));
    double total = 0, furthest = 0;
    for (std::size_t n = 0; n < log_p.size(); n++) {
        double p = 0;
        for (std::size_t k = 0; k < 2; k++) {  // L y = x - m by hand
            double y0 = (double(grid[2 * n]) - g.means()[2 * k]) / 0.6;
            double y1 = (double(grid[2 * n + 1]) - g.means()[2 * k + 1] + 0.5 * y0) / 0.4;
            p += g.weights()[k] * std::exp(-0.5 * (y0 * y0 + y1 * y1)) /
                 (2 * 3.14159265358979323846 * determinant);
        }
        total += std::exp(log_p[n]) * step * step;
        if (p > 1e-12) furthest = std::max(furthest, std::fabs(log_p[n] - std::log(p)));
        CHECK(log_p[n] == log_p[n]);
    }
    CHECK(std::fabs(total - 1) < 1e-4);
    CHECK(furthest < 2e-4);
}

TEST_CASE(
    "mixture: draws have its weights, means and covariance; the temperature scales how far they stray") {
    const GaussianMixture g({1.0}, {1, -2}, {0.6, 0, -0.5, 0.4});
    for (double temperature : {1.0, 0.5, 0.0}) {
        std::vector<float> x = draws(g, 20000, 5, temperature);
        double mean[2] = {0, 0}, product[3] = {0, 0, 0};
        for (std::size_t n = 0; n < x.size(); n += 2) {
            double a = double(x[n]) - 1, b = double(x[n + 1]) + 2;
            mean[0] += a / 20000, mean[1] += b / 20000;
            product[0] += a * a / 20000, product[1] += a * b / 20000, product[2] += b * b / 20000;
        }
        const double t = temperature * temperature;
        CHECK(std::fabs(mean[0]) < 0.015);
        CHECK(std::fabs(mean[1]) < 0.015);
        CHECK(std::fabs(product[0] - 0.36 * t) < 0.015);
        CHECK(std::fabs(product[1] + 0.30 * t) < 0.015);
        CHECK(std::fabs(product[2] - 0.41 * t) < 0.015);
    }
    int second = 0;
    const GaussianMixture two({0.7, 0.3}, {0, 10}, {0.1});
    for (float x : draws(two, 20000, 6)) second += x > 5;
    CHECK(std::abs(second - 6000) < 300);
}

TEST_CASE("mixture: the same bits for 1, 2 and 5 threads, and for a row alone") {
    const GaussianMixture truth = around_spheres(20, 12, 0.3, 7);
    std::vector<float> x = draws(truth, 3000, 8), other = draws(truth, 700, 9);
    MixtureOptions o;
    o.components = 150;
    o.rounds = 4;
    std::vector<GaussianMixture> fitted;
    std::vector<std::vector<double>> densities, directions;
    for (int count : {1, 2, 5}) {
        set_threads(count);
        fitted.push_back(GaussianMixture::fit(view_of(x, 12), o).widened(view_of(other, 12)));
        densities.push_back(fitted.back().log_densities(view_of(other, 12)));
        directions.push_back(log_density_of_directions(fitted.back(), 2, view_of(other, 12)));
    }
    set_threads(0);
    for (std::size_t i = 1; i < 3; i++) {
        CHECK(fitted[i].weights() == fitted[0].weights());
        CHECK(fitted[i].means() == fitted[0].means());
        CHECK(fitted[i].factor() == fitted[0].factor());
        CHECK(densities[i] == densities[0]);
        CHECK(directions[i] == directions[0]);
    }
    View alone = view_of(other, 12);
    alone.data = other.data() + 12 * 333;
    alone.shape = {1, 12};
    CHECK(fitted[0].log_densities(alone)[0] == densities[0][333]);
    CHECK(log_density_of_directions(fitted[0], 2, alone)[0] == directions[0][333]);
    GaussianMixture again = GaussianMixture::fit(view_of(x, 12), o);
    o.seed = 2;
    CHECK(GaussianMixture::fit(view_of(x, 12), o).means() != again.means());
}

TEST_CASE("mixture: widened makes rows that were not fitted likelier, as much as a factor can") {
    const GaussianMixture truth = around_spheres(1, 10, 0.5, 11);
    std::vector<float> x = draws(truth, 1000, 12), other = draws(truth, 500, 13),
                       third = draws(truth, 2000, 14);
    MixtureOptions o;
    o.components = 250;
    o.rounds = 2;
    const GaussianMixture narrow = GaussianMixture::fit(view_of(x, 10), o);
    double by = 0;
    const GaussianMixture wide = narrow.widened(view_of(other, 10), &by);
    CHECK(by > 1.2);
    auto at = [&](double factor, const std::vector<float>& rows) {
        std::vector<double> l(narrow.factor());
        for (double& each : l) each *= std::sqrt(factor);
        return mean_of(GaussianMixture(narrow.weights(), narrow.means(), l).log_densities(view_of(rows, 10)));
    };
    const double found = mean_of(wide.log_densities(view_of(other, 10)));
    CHECK(std::fabs(found - at(by, other)) < 1e-9);
    for (double factor : {1.0, by / 1.1, by / 1.02, by * 1.02, by * 1.1, by * 2}) {
        CAPTURE(factor);
        CHECK(found >= at(factor, other) - 1e-4);
    }
    CHECK(at(by, third) > at(1, third));
    // rows that were fitted need no widening
    narrow.widened(view_of(x, 10), &by);
    CHECK(by == 1);
}

TEST_CASE("directions: one sphere, against quadrature over the length") {
    for (int Z : {3, 8, 32})
        for (double deviation : {0.1, 0.5}) {
            const GaussianMixture g = around_spheres(4, Z, deviation, std::uint64_t(Z));
            std::vector<float> u = uniform_directions(20, 1, Z, 5);
            std::vector<double> found = log_density_of_directions(g, 1, view_of(u, Z));
            for (std::size_t n = 0; n < 20; n++) {
                const int steps = 6000;
                const double end = 6, step = end / steps;
                std::vector<float> line;
                for (int s = 0; s < steps; s++)
                    for (int i = 0; i < Z; i++)
                        line.push_back(
                            float((s + 0.5) * step * double(u[n * std::size_t(Z) + std::size_t(i)])));
                std::vector<double> log_p = g.log_densities(view_of(line, Z));
                double top = -INFINITY, sum = 0;
                for (int s = 0; s < steps; s++) {
                    log_p[std::size_t(s)] += (Z - 1) * std::log((s + 0.5) * step);
                    top = std::max(top, log_p[std::size_t(s)]);
                }
                for (double each : log_p) sum += std::exp(each - top) * step;
                CAPTURE(Z);
                CHECK(std::fabs(found[n] - (top + std::log(sum))) < 1.0 / (12 * (Z - 1)) + 0.002);
            }
        }
}

TEST_CASE("directions: the density is that of the draws, and integrates to 1") {
    const int K = 2, Z = 8, n = 40000;
    const GaussianMixture g = around_spheres(3, K * Z, 0.7, 21, 0.25);
    // E p / p0 over uniform directions, and E p0 / p over the mixture's own, are both 1.
    std::vector<float> u = uniform_directions(n, K, Z, 22);
    double total = 0;
    for (double log_p : log_density_of_directions(g, K, view_of(u, K * Z)))
        total += std::exp(log_p - log_uniform(K, Z)) / n;
    CHECK(std::fabs(total - 1) < 0.05);
    std::vector<float> own = draws(g, n, 23);
    onto_spheres(own, Z);
    double inverse = 0;
    for (double log_p : log_density_of_directions(g, K, view_of(own, K * Z)))
        inverse += std::exp(log_uniform(K, Z) - log_p) / n;
    CHECK(std::fabs(inverse - 1) < 0.05);
}

TEST_CASE("mixture: few rows, equal rows, one row: a density all the same") {
    MixtureOptions o;
    o.components = 10;
    std::vector<float> few = draws(around_spheres(2, 20, 0.3, 31), 6, 32);  // fewer rows than dimensions
    GaussianMixture g = GaussianMixture::fit(view_of(few, 20), o);
    CHECK(g.components() == 6);
    for (double p : g.log_densities(view_of(few, 20))) CHECK(std::isfinite(p));
    for (double x : g.draw(make_stream(1, "test", 0), 0)) CHECK(std::isfinite(x));

    std::vector<float> equal(std::size_t(20 * 50), 0.25f);
    g = GaussianMixture::fit(view_of(equal, 20), o);
    for (double p : g.log_densities(view_of(equal, 20))) CHECK(std::isfinite(p));
    for (double x : g.draw(make_stream(1, "test", 0), 0)) CHECK(std::fabs(x - 0.25) < 0.02);
    CHECK(std::isfinite(mean_of(g.widened(view_of(equal, 20)).log_densities(view_of(equal, 20)))));

    std::vector<float> one = {1, 2, 3};
    g = GaussianMixture::fit(view_of(one, 3), o);
    CHECK(g.components() == 1);
    CHECK(std::isfinite(g.log_densities(view_of(one, 3))[0]));
}

TEST_CASE("mixture: what is no density is refused") {
    MixtureOptions o;
    std::vector<float> x = draws(known(), 50, 1);
    x[77] = NAN;
    CHECK_SAYS(message_of<BadInput>([&] { GaussianMixture::fit(view_of(x, 4), o); }), "not finite");
    x[77] = INFINITY;
    CHECK_SAYS(message_of<BadInput>([&] { GaussianMixture::fit(view_of(x, 4), o); }), "not finite");
    CHECK_SAYS(message_of<BadInput>([&] { GaussianMixture::fit(View{}, o); }), "at least one row");
    o.components = 0;
    CHECK_SAYS(message_of<BadUsage>([&] { GaussianMixture::fit(view_of(x, 4), o); }), "0 components");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({0.5, 0.4}, {1, 2}, {1}); }), "sum to 0.9");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1.5, -0.5}, {1, 2}, {1}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {1, 2}, {1, 0.5, 0, 1}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {1, 2}, {1, 0, 0, 0}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {NAN, 2}, {1, 0, 0, 1}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {1, 2}, {1}); }), "expected M");
    CHECK_SAYS(message_of<Error>([] { known().log_densities(View{}); }), "rows of 4");
}

TEST_CASE("mixture: weights sum to 1, however many components have no part in a row") {
    // In few dimensions many components are near enough to be dropped by a hair.
    const int D = 8, N = 6000;
    std::vector<float> rows;
    Stream stream = make_stream(3, "rows", 0);
    for (std::uint32_t i = 0; int(rows.size()) < N * D; i++) {
        FourNormals n = normal4(stream.at(i, 0, 0));
        for (int k = 0; k < 4; k++) rows.push_back(n[k]);
    }
    MixtureOptions options;
    options.components = 2500;
    options.rounds = 2;
    GaussianMixture g = GaussianMixture::fit(view_of(rows, D), options);
    double total = 0;
    for (double w : g.weights()) total += w;
    CHECK(std::fabs(total - 1) < 1e-12);
}

TEST_CASE("cholesky: factor, inverse and solution") {
    const int n = 40;
    Sequence random(1, "cholesky");
    std::vector<double> l(std::size_t(n * n), 0.0), a(std::size_t(n * n), 0.0), b, x;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            l[std::size_t(i * n + j)] = i == j ? 1 + random.uniform_double() : random.uniform_double() - 0.5;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++)
                a[std::size_t(i * n + j)] += l[std::size_t(i * n + k)] * l[std::size_t(j * n + k)];
    std::vector<double> found(a), inverse(l);
    REQUIRE(cholesky(found.data(), n));
    invert_lower(inverse.data(), n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double unit = 0;
            for (int k = 0; k < n; k++) unit += l[std::size_t(i * n + k)] * inverse[std::size_t(k * n + j)];
            CHECK(std::fabs(unit - (i == j)) < 1e-9);
            CHECK(std::fabs(found[std::size_t(i * n + j)] - l[std::size_t(i * n + j)]) < 1e-9);
        }
    for (int i = 0; i < 2 * n; i++) x.push_back(random.uniform_double());
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 2; c++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += a[std::size_t(i * n + k)] * x[std::size_t(2 * k + c)];
            b.push_back(sum);
        }
    solve_cholesky(found.data(), n, b.data(), 2);
    for (std::size_t i = 0; i < x.size(); i++) CHECK(std::fabs(b[i] - x[i]) < 1e-6);
    a[0] = -1;
    CHECK(!cholesky(a.data(), n));
}

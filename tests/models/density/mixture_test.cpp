// SPDX-License-Identifier: MIT
// Tests the mixture of Gaussians: its density against its own draws and against quadrature; fits to unusual rows; and
// that results have the same bits for any number of threads.
#include "models/density/mixture.h"

#include <cmath>
#include <cstring>

#include "engine/ops/cpu/parallel.h"
#include "models/density/cholesky.h"
#include "tests/normals.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

View view_of(const std::vector<float>& numbers, std::int64_t columns) {
    View v;
    v.data = const_cast<float*>(numbers.data());
    v.shape = {std::int64_t(numbers.size()) / columns, columns};
    return v;
}

// Returns n draws from a mixture, row after row.
std::vector<float> draws(const GaussianMixture& g, int n, std::uint64_t seed, double temperature = 1) {
    std::vector<float> rows;
    for (int i = 0; i < n; i++)
        for (double x : g.draw(make_stream(seed, "test", 0), std::uint32_t(i), temperature)) rows.push_back(float(x));
    return rows;
}

double mean_of(const std::vector<double>& numbers) {
    double sum = 0;
    for (double x : numbers) sum += x / double(numbers.size());
    return sum;
}

// Returns a mixture of three components in four dimensions, with a covariance that is far from a multiple of the
// identity.
GaussianMixture known() {
    return GaussianMixture({0.5, 0.3, 0.2}, {4, 0, 0, 1, -4, 1, 0, 0, 0, -4, 3, -1},
                           {1, 0, 0, 0, 0.8, 0.5, 0, 0, -0.3, 0.2, 0.7, 0, 0.1, 0.4, -0.6, 0.9});
}

// Returns M components in D dimensions near the unit sphere, as latents are.
GaussianMixture around_spheres(int M, int D, double deviation, std::uint64_t seed, double reach = 1.2) {
    Sequence random(seed, "mixture");
    std::vector<double> means, factor(std::size_t(D * D), 0.0);
    for (int i = 0; i < M * D; i++) means.push_back(reach * (2 * random.uniform_double() - 1));
    for (int i = 0; i < D; i++)
        for (int j = 0; j <= i; j++)
            factor[std::size_t(i * D + j)] = deviation * (i == j ? 1 : 0.4 * (2 * random.uniform_double() - 1));
    return GaussianMixture(std::vector<double>(std::size_t(M), 1.0 / M), means, factor);
}

}  // namespace

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
        for (std::size_t k = 0; k < 2; k++) {  // solves L y = x - m by hand
            double y0 = (double(grid[2 * n]) - g.means()[2 * k]) / 0.6;
            double y1 = (double(grid[2 * n + 1]) - g.means()[2 * k + 1] + 0.5 * y0) / 0.4;
            p += g.weights()[k] * std::exp(-0.5 * (y0 * y0 + y1 * y1)) / (2 * 3.14159265358979323846 * determinant);
        }
        total += std::exp(log_p[n]) * step * step;
        if (p > 1e-12) furthest = std::max(furthest, std::fabs(log_p[n] - std::log(p)));
        CHECK(log_p[n] == log_p[n]);
    }
    CHECK(std::fabs(total - 1) < 1e-4);
    CHECK(furthest < 2e-4);
}

TEST_CASE("mixture: draws have its weights, means and covariance; the temperature scales how far they stray") {
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
    const auto fit = [&](std::uint64_t seed) { return GaussianMixture::fit(view_of(x, 12), 150, 1e-4, seed); };
    std::vector<GaussianMixture> fitted;
    std::vector<std::vector<double>> densities;
    for (int count : {1, 2, 5}) {
        set_threads(count);
        fitted.push_back(fit(1).widened(view_of(other, 12)));
        densities.push_back(fitted.back().log_densities(view_of(other, 12)));
    }
    set_threads(0);
    for (std::size_t i = 1; i < 3; i++) {
        CHECK(fitted[i].weights() == fitted[0].weights());
        CHECK(fitted[i].means() == fitted[0].means());
        CHECK(fitted[i].factor() == fitted[0].factor());
        CHECK(densities[i] == densities[0]);
    }
    View alone = view_of(other, 12);
    alone.data = other.data() + 12 * 333;
    alone.shape = {1, 12};
    CHECK(fitted[0].log_densities(alone)[0] == densities[0][333]);
    CHECK(fit(1).means() == fitted[0].means());
    CHECK(fit(2).means() != fitted[0].means());
}

TEST_CASE("mixture: widened makes rows that were not fitted likelier, as much as a factor can") {
    const GaussianMixture truth = around_spheres(1, 10, 0.5, 11);
    std::vector<float> x = draws(truth, 1000, 12), other = draws(truth, 500, 13), third = draws(truth, 2000, 14);
    const GaussianMixture narrow = GaussianMixture::fit(view_of(x, 10), 250, 1e-4, 1);
    const GaussianMixture wide = narrow.widened(view_of(other, 10));
    const double root = wide.factor()[0] / narrow.factor()[0], by = root * root;
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
    // A mixture needs no widening for rows to which it was fitted.
    CHECK(narrow.widened(view_of(x, 10)).factor() == narrow.factor());
}

TEST_CASE("mixture: few rows, equal rows, one row: a density all the same") {
    const auto fit = [](const View& rows) { return GaussianMixture::fit(rows, 10, 1e-4, 1); };
    std::vector<float> few = draws(around_spheres(2, 20, 0.3, 31), 6, 32);  // fewer rows than dimensions
    GaussianMixture g = fit(view_of(few, 20));
    CHECK(g.components() == 6);
    for (double p : g.log_densities(view_of(few, 20))) CHECK(std::isfinite(p));
    for (double x : g.draw(make_stream(1, "test", 0), 0)) CHECK(std::isfinite(x));

    std::vector<float> equal(std::size_t(20 * 50), 0.25f);
    g = fit(view_of(equal, 20));
    for (double p : g.log_densities(view_of(equal, 20))) CHECK(std::isfinite(p));
    for (double x : g.draw(make_stream(1, "test", 0), 0)) CHECK(std::fabs(x - 0.25) < 0.02);
    CHECK(std::isfinite(mean_of(g.widened(view_of(equal, 20)).log_densities(view_of(equal, 20)))));

    std::vector<float> one = {1, 2, 3};
    g = fit(view_of(one, 3));
    CHECK(g.components() == 1);
    CHECK(std::isfinite(g.log_densities(view_of(one, 3))[0]));
}

TEST_CASE("mixture: what is no density is refused") {
    std::vector<float> x = draws(known(), 50, 1);
    const auto fit = [](const View& rows, int components) { return GaussianMixture::fit(rows, components, 1e-4, 1); };
    for (float wrong : {NAN, INFINITY}) {
        x[77] = wrong;
        CHECK_SAYS(message_of<BadInput>([&] { fit(view_of(x, 4), 500); }), "not finite");
    }
    CHECK_SAYS(message_of<BadInput>([&] { fit(View{}, 500); }), "at least one row");
    CHECK_SAYS(message_of<BadUsage>([&] { fit(view_of(x, 4), 0); }), "0 components");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({0.5, 0.4}, {1, 2}, {1}); }), "sum to 0.9");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1.5, -0.5}, {1, 2}, {1}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {1, 2}, {1, 0.5, 0, 1}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {1, 2}, {1, 0, 0, 0}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {NAN, 2}, {1, 0, 0, 1}); }), "no density");
    CHECK_SAYS(message_of<BadInput>([] { GaussianMixture({1}, {1, 2}, {1}); }), "expected M");
    CHECK_SAYS(message_of<Error>([] { known().log_densities(View{}); }), "rows of 4");
}

TEST_CASE("mixture: weights sum to 1, however many components have no part in a row") {
    // In few dimensions, many components are near the threshold at which a component is dropped for a row.
    const int D = 8, N = 6000;
    std::vector<float> rows;
    Stream stream = make_stream(3, "rows", 0);
    for (std::uint32_t i = 0; int(rows.size()) < N * D; i++) {
        FourNormals n = normal4(stream.at(i, 0, 0));
        for (int k = 0; k < 4; k++) rows.push_back(n[k]);
    }
    GaussianMixture g = GaussianMixture::fit(view_of(rows, D), 2500, 1e-4, 1);
    double total = 0;
    for (double w : g.weights()) total += w;
    CHECK(std::fabs(total - 1) < 1e-12);
}

TEST_CASE("cholesky: factor and inverse") {
    const int n = 40;
    Sequence random(1, "cholesky");
    std::vector<double> l(std::size_t(n * n), 0.0), a(std::size_t(n * n), 0.0);
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
    a[0] = -1;
    CHECK(!cholesky(a.data(), n));
}

// If a part of a draw is drawn again, given the other part, the whole is again a draw from the mixture.
TEST_CASE("mixture: some numbers given the others: what stays, stays, and the whole has the same moments") {
    const GaussianMixture m({0.3, 0.7}, {0, 0, 0, 2, -1, 3}, {1, 0, 0, 0.8, 0.5, 0, -0.4, 0.3, 0.7});
    constexpr int count = 20000;
    const Stream first = make_stream(1, "first", 0), second = make_stream(1, "second", 0);
    for (const auto& [from, to] : {std::pair(0, 1), {1, 2}, {1, 3}, {0, 3}}) {
        double sums[2][9] = {};
        for (std::uint32_t i = 0; i < count; i++) {
            const std::vector<double> x = m.draw(first, i), y = m.draw_rest(x, from, to, second, i);
            for (int k = 0; k < 3; k++) CHECK((k >= from && k < to) == (x[std::size_t(k)] != y[std::size_t(k)]));
            for (std::size_t k = 0; k < 9; k++) {
                sums[0][k] += (k < 3 ? x[k] : x[k / 3 - 1] * x[k % 3]) / count;
                sums[1][k] += (k < 3 ? y[k] : y[k / 3 - 1] * y[k % 3]) / count;
            }
        }
        for (int k = 0; k < 9; k++)
            CHECK(std::fabs(sums[0][k] - sums[1][k]) <= 0.06 * std::fmax(1, std::fabs(sums[0][k])));
    }
}

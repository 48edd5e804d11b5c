// SPDX-License-Identifier: MIT
// Compares fits with their definition, computed in double and without whitening: floors, means, covariances, the number
// of components of a prior, and the rows from which a prior is fitted. Also tests that draws follow the density.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "models/density/mixture.h"
#include "models/density/prior.h"

using namespace masquerade;

namespace {

using Numbers = std::vector<double>;
using Floats = std::vector<float>;

struct Rows {
    Floats x;
    int N, D;
    View view() const { return view_of(x, {N, D}, "rows"); }
    double at(int n, int i) const { return double(x[std::size_t(n * D + i)]); }
};

// Returns rows around two points. If `flat` is true, the last number is the same in all rows.
Rows some_rows(int N, int D, bool flat, std::uint64_t seed = 3) {
    Rows rows{{}, N, D};
    Sequence random(seed, "rows");
    for (int n = 0; n < N; n++)
        for (int i = 0; i < D; i++)
            rows.x.push_back(flat && i == D - 1 ? 0.25f
                                                : float((n % 2 ? 1.5 : -1) + (1 + i) * random.uniform_double()));
    return rows;
}

// Computes the mean of the rows and their covariance. `floor` is the least value of the covariance's diagonal.
void pool_of(const Rows& x, double floor, Numbers& mean, Numbers& covariance) {
    const auto D = std::size_t(x.D);
    mean.assign(D, 0), covariance.assign(D * D, 0);
    for (int n = 0; n < x.N; n++)
        for (int i = 0; i < x.D; i++) mean[std::size_t(i)] += x.at(n, i) / x.N;
    for (int n = 0; n < x.N; n++)
        for (std::size_t i = 0; i < D; i++)
            for (std::size_t j = 0; j < D; j++)
                covariance[i * D + j] += (x.at(n, int(i)) - mean[i]) * (x.at(n, int(j)) - mean[j]) / x.N;
    double variance = 0;
    for (std::size_t i = 0; i < D; i++) variance += covariance[i * D + i] / x.D;
    for (std::size_t i = 0; i < D; i++) covariance[i * D + i] += std::max(floor * variance, 1e-6);
}

Numbers covariance_of(const GaussianMixture& g) {
    const auto D = std::size_t(g.dimensions());
    Numbers s(D * D, 0.0);
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j < D; j++)
            for (std::size_t k = 0; k < D; k++) s[i * D + j] += g.factor()[i * D + k] * g.factor()[j * D + k];
    return s;
}

// Returns N(x; m, S) times 2 pi, in two dimensions.
double normal2(const double* x, const double* m, const Numbers& S) {
    const double det = S[0] * S[3] - S[1] * S[2], a = x[0] - m[0], b = x[1] - m[1];
    return std::exp(-(S[3] * a * a - (S[1] + S[2]) * a * b + S[0] * b * b) / det / 2) / std::sqrt(det);
}

bool near(const Numbers& found, const Numbers& expected, double most) {
    double worst = found.size() == expected.size() ? 0 : 1;
    for (std::size_t i = 0; i < found.size() && i < expected.size(); i++)
        worst = std::max(worst, std::abs(found[i] - expected[i]) / (0.1 + std::abs(expected[i])));
    CAPTURE(worst);
    CHECK(worst <= most);
    return worst <= most;
}

}  // namespace

TEST_CASE("mixture: a fit is the means of the rows nearest to drawn ones, and the covariance around them") {
    for (bool flat : {false, true})
        for (double floor : {0.0, 1e-4, 0.3})
            for (int components : {1, 3, 5}) {
                CAPTURE(flat);
                CAPTURE(floor);
                CAPTURE(components);
                const Rows x = some_rows(16, 2, flat);
                const GaussianMixture g = GaussianMixture::fit(x.view(), components, floor, 9);
                Numbers mean, pool;
                pool_of(x, floor, mean, pool);
                const std::size_t M = std::size_t(components);
                const std::vector<std::size_t> starts = drawn(16, M, Sequence(9, "mixture.start"));
                std::vector<std::size_t> nearest;
                Numbers count(M, 0.0), means(2 * M, 0.0), weights, S = pool;
                for (int n = 0; n < 16; n++) {
                    const double row[] = {x.at(n, 0), x.at(n, 1)};
                    Numbers density;
                    for (std::size_t start : starts) {
                        const double from[] = {x.at(int(start), 0), x.at(int(start), 1)};
                        density.push_back(normal2(row, from, pool));
                    }
                    nearest.push_back(std::size_t(std::max_element(density.begin(), density.end()) - density.begin()));
                    count[nearest.back()]++;
                    for (std::size_t i : {0, 1}) means[2 * nearest.back() + i] += row[i];
                }
                for (std::size_t k = 0; k < M; k++) {
                    weights.push_back((count[k] + 1) / double(16 + M));
                    for (std::size_t i : {0, 1}) means[2 * k + i] /= count[k];
                }
                for (std::size_t i = 0; i < 4; i++) {
                    S[i] *= 10;
                    for (int n = 0; n < 16; n++)
                        S[i] += (x.at(n, int(i / 2)) - means[2 * nearest[std::size_t(n)] + i / 2]) *
                                (x.at(n, int(i % 2)) - means[2 * nearest[std::size_t(n)] + i % 2]);
                    S[i] /= 26;
                }
                CHECK(g.weights() == weights);
                CHECK(near(g.means(), means, 1e-6));
                const Numbers found = covariance_of(g);
                for (std::size_t i = 0; i < 4; i++)
                    CHECK(std::abs(found[i] - S[i]) <= 1e-5 * std::sqrt(S[i / 2 * 3] * S[i % 2 * 3]));
            }
}

TEST_CASE("prior: a component for every four of the rows that are fitted; those that are held out are none") {
    LatentOptions o;
    o.kind = LatentKind::none, o.size = 2;
    const LatentSpace space(o, 1);
    for (int N : {1, 3, 4, 7, 8, 19, 20, 40, 43, 44, 200, 1000}) {
        CAPTURE(N);
        const int fitted = N - N / 20;
        CHECK(MixturePrior::fit(space, some_rows(N, 2, false).view(), 1).codes().components() ==
              std::max(1, fitted / 4));
    }
}

TEST_CASE(
    "prior: fewer rows than a few hundred a number have a floor of numbers over rows, and ten rows more of "
    "it") {
    LatentOptions o;
    o.kind = LatentKind::none, o.size = 3;
    const LatentSpace space(o, 1);
    for (int N : {4, 5, 7}) {  // so few rows that there is one component, and no row is held out
        const Rows rows = some_rows(N, 3, true);
        const GaussianMixture g = MixturePrior::fit(space, rows.view(), 1).codes();
        REQUIRE(g.components() == 1);
        Numbers mean, bare, floored;
        pool_of(rows, 0, mean, bare), pool_of(rows, 3.0 / N, mean, floored);
        Numbers expected;
        for (std::size_t i = 0; i < 9; i++)
            expected.push_back((N * (bare[i] - (i % 4 ? 0 : 1e-6)) + 10 * floored[i]) / (N + 10));
        CHECK(near(covariance_of(g), expected, 1e-4));
    }
}

// For any density u that is 0 where p is 0, E_p[u / p] = 1.
TEST_CASE("mixture: what is drawn is of the density: u over p has the mean 1 for densities u inside it") {
    const GaussianMixture p({0.3, 0.7}, {0, 0, 2, -1}, {1, 0, 0.5, 0.8});
    for (const GaussianMixture& u : {GaussianMixture({1}, {0.4, 0.2}, {0.7, 0, 0.3, 0.6}),
                                     GaussianMixture({0.5, 0.5}, {0.2, 0, 1.8, -0.8}, {0.8, 0, 0.4, 0.7})}) {
        constexpr int count = 20000;
        Floats rows;
        const Stream stream = make_stream(4, "draws", 0);
        for (std::uint32_t line = 0; line < count; line++)
            for (double x : p.draw(stream, line)) rows.push_back(float(x));
        const View view = view_of(rows, {count, 2}, "draws");
        const Numbers of_p = p.log_densities(view), of_u = u.log_densities(view);
        double sum = 0, squares = 0;
        for (std::size_t i = 0; i < count; i++) {
            const double ratio = std::exp(of_u[i] - of_p[i]);
            sum += ratio / count, squares += ratio * ratio / count;
        }
        CHECK(std::abs(sum - 1) <= 5 * std::sqrt((squares - sum * sum) / count));
    }
}

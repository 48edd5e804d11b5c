// SPDX-License-Identifier: MIT
// Expectation and maximisation, in the space where the covariance of all rows is 1: directions that hardly vary count
// as much as the others there, and float is enough. A round is two matrix products over rows and components; their
// (N,M) shares exist for a chunk of rows at a time.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "engine/math/scalar.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/ops.h"
#include "models/density/cholesky.h"
#include "models/density/mixture.h"

namespace masquerade {
namespace {

constexpr std::int64_t chunk = 1024;  // rows at a time
constexpr double least_variance = 1e-6, least_count = 1e-3, most_widening = 100;
constexpr float least_share = 1e-8f;  // of a row in a component; below it is 0: products of denormal numbers are slow

// y(n,D) = (x - middle) inverse^T
std::vector<float> whitened(const View& x, const GaussianMixture::Whitened& w) {
    const std::int64_t n = x.rows(), D = x.columns();
    std::vector<float> centred, y(std::size_t(n * D));
    const float* from = x.as<float>();
    for (std::int64_t i = 0; i < n * D; i++) centred.push_back(float(double(from[i]) - w.middle[std::size_t(i % D)]));
    linear_forward(view_of(centred, {n, D}, "mixture.centred"), view_of(w.inverse, {D, D}, "mixture.inverse"), View{},
                   view_of(y, {n, D}, "mixture.whitened"));
    return y;
}

// Returns log p (n) of rows x(n,D); fills shares(n,M), the posterior of the components.
std::vector<double> expectation(const GaussianMixture& g, const View& x, std::vector<float>& shares) {
    const std::int64_t n = x.rows(), D = g.dimensions(), M = g.components();
    const GaussianMixture::Whitened& w = g.whitened();
    const std::vector<float> y = whitened(x, w);
    std::vector<double> log_p(static_cast<std::size_t>(n));
    shares.resize(std::size_t(n * M));
    linear_forward(view_of(y, {n, D}, "mixture.whitened"), view_of(w.means, {M, D}, "mixture.means"),
                   view_of(w.constants, {M}, "mixture.constants"), view_of(shares, {n, M}, "mixture.shares"));
    parallel_for(n, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; r++) {
            float* s = shares.data() + r * M;
            const float* row = y.data() + r * D;
            const float most = top(OneLane{}, int(M), [=](int k) { return s[k]; });
            each(OneLane{}, int(M), [=](int k) { s[k] = exp_of(clamp_of(s[k] - most, -80.0f, 0.0f)); });
            const float total = sum(OneLane{}, int(M), [=](int k) { return s[k]; });
            each(OneLane{}, int(M), [=](int k) { s[k] = choose(s[k] < least_share * total, 0.0f, s[k] / total); });
            const double square = double(sum(OneLane{}, int(D), [=](int i) { return row[i] * row[i]; }));
            log_p[std::size_t(r)] = w.constant - 0.5 * square + double(most) + std::log(double(total));
        }
    });
    return log_p;
}

// sums(D,D) of t t^T over the rows of t(n,D)
std::vector<double> outer_products(const std::vector<float>& t, std::int64_t n, std::int64_t D) {
    std::vector<float> sums(std::size_t(D * D));
    View rows = view_of(t, {n, D}, "mixture.rows"), to = view_of(sums, {D, D}, "mixture.covariance");
    linear_backward(rows, rows, to, Grad{}, Grad{to, false}, Grad{});  // of the weight only the shape is read
    return {sums.begin(), sums.end()};
}

// One component: the mean of all rows and their covariance, with the floor.
GaussianMixture pool_of(const View& x, double floor) {
    const std::int64_t N = x.rows(), D = x.columns();
    const float* from = x.as<float>();
    std::vector<double> mean(std::size_t(D), 0.0);
    for (std::int64_t i = 0; i < N * D; i++) mean[std::size_t(i % D)] += double(from[i]) / double(N);
    for (double m : mean)
        if (!std::isfinite(m)) throw BadInput("a mixture cannot be fitted to numbers that are not finite");
    std::vector<float> centred;
    for (std::int64_t i = 0; i < N * D; i++) centred.push_back(float(double(from[i]) - mean[std::size_t(i % D)]));
    std::vector<double> covariance = outer_products(centred, N, D);
    double variance = 0;
    for (double& c : covariance) c /= double(N);
    for (std::int64_t i = 0; i < D * D; i += D + 1) variance += covariance[std::size_t(i)] / double(D);
    for (std::int64_t i = 0; i < D * D; i += D + 1)
        covariance[std::size_t(i)] += std::max(floor * variance, least_variance);
    if (!cholesky(covariance.data(), int(D)))
        throw BadInput(
            text("the covariance of ", N, " rows of ", D, " numbers is not positive definite; is one infinite?"));
    return GaussianMixture({1}, std::move(mean), std::move(covariance));
}

// The result of a round: how many rows belong to each component, and their sum.
struct Statistics {
    std::vector<double> counts;  // (M)
    std::vector<float> sums;     // (M,D)
};

Statistics statistics_of(const GaussianMixture& g, const View& rows) {
    const std::int64_t N = rows.rows(), D = rows.columns(), M = g.components();
    Statistics found{std::vector<double>(std::size_t(M)), std::vector<float>(std::size_t(M * D))};
    std::vector<float> shares;
    for (std::int64_t first = 0; first < N; first += chunk) {
        const View part = rows_of(rows, first, std::min(chunk, N - first));
        expectation(g, part, shares);
        parallel_for(M, 128, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = 0; r < part.rows(); r++)
                for (std::int64_t k = begin; k < end; k++)
                    found.counts[std::size_t(k)] += double(shares[std::size_t(r * M + k)]);
        });
        const View sums = view_of(found.sums, {M, D}, "mixture.sums");
        linear_backward(view_of(shares, {part.rows(), M}, "mixture.shares"), part, sums, Grad{}, Grad{sums, true},
                        Grad{});
    }
    return found;
}

// The most likely parameters under the priors: every weight as of one row more, the covariance as of `strength` rows
// more around their means with the covariance of all rows, which is 1 here. products(D,D): sum of y y^T.
GaussianMixture maximisation(const Statistics& found, const std::vector<double>& products, double strength,
                             std::vector<double> means) {
    const std::int64_t M = std::int64_t(found.counts.size()), D = std::int64_t(means.size()) / M;
    std::vector<double> weights, covariance(products);
    std::vector<float> scaled(std::size_t(M * D));  // sqrt(n_k) m_k
    double kept = 0, all = 0;
    for (double count : found.counts) all += count;  // nearly the rows: shares that were too small are gone
    for (std::int64_t k = 0; k < M; k++) {
        const double count = found.counts[std::size_t(k)];
        weights.push_back((count + 1) / (all + double(M)));
        if (count < least_count) continue;  // its mean stays where it is
        kept += count;
        for (std::int64_t i = 0; i < D; i++) {
            double& m = means[std::size_t(k * D + i)];
            m = double(found.sums[std::size_t(k * D + i)]) / count;
            scaled[std::size_t(k * D + i)] = float(std::sqrt(count) * m);
        }
    }
    std::vector<double> between = outer_products(scaled, M, D);
    for (std::int64_t i = 0; i < D * D; i++) {
        covariance[std::size_t(i)] -= between[std::size_t(i)];
        if (i / D == i % D) covariance[std::size_t(i)] += strength;
        covariance[std::size_t(i)] /= kept + strength;
    }
    if (!cholesky(covariance.data(), int(D)))
        throw Error(text("the covariance of a mixture of ", M, " components is not positive definite"));
    return GaussianMixture(std::move(weights), std::move(means), std::move(covariance));
}

}  // namespace

GaussianMixture GaussianMixture::fit(const View& x, const MixtureOptions& o) {
    if (!x || x.count() == 0) throw BadInput("a mixture needs at least one row to be fitted to");
    if (o.components < 1 || !(o.strength > 0) || !(o.floor >= 0))
        throw BadUsage(text("a mixture of ", o.components, " components, strength ", o.strength, ", floor ", o.floor,
                            "; expected at least 1, above 0, at least 0"));
    const std::int64_t N = x.rows();
    const std::size_t D = std::size_t(x.columns());
    const GaussianMixture pool = pool_of(x, o.floor);
    const std::vector<float> y = masquerade::whitened(x, pool.whitened());
    const View rows = view_of(y, x.shape, "mixture.rows");
    const std::vector<double> products = outer_products(y, N, x.columns());
    std::vector<double> means, factor(D * D, 0.0);
    // rows that are all different
    for (std::size_t n : drawn(std::size_t(N), std::size_t(o.components), Sequence(o.seed, "mixture.start")))
        means.insert(means.end(), y.begin() + std::ptrdiff_t(n * D), y.begin() + std::ptrdiff_t((n + 1) * D));
    const std::size_t M = means.size() / D;
    for (std::size_t i = 0; i < D * D; i += D + 1) factor[i] = M > 1 ? 0.7 : 1;
    GaussianMixture g(std::vector<double>(M, 1 / double(M)), std::move(means), std::move(factor));
    for (int round = 0; round < o.rounds; round++)
        g = maximisation(statistics_of(g, rows), products, o.strength, g.means());
    // back: x = mean + P y
    const std::vector<double>& P = pool.factor();
    std::vector<double> back, factor_back(D * D, 0.0);
    for (std::size_t k = 0; k < M; k++)
        for (std::size_t i = 0; i < D; i++) {
            double sum = pool.means()[i];
            for (std::size_t j = 0; j <= i; j++) sum += P[i * D + j] * g.means()[k * D + j];
            back.push_back(sum);
        }
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j <= i; j++)
            for (std::size_t l = j; l <= i; l++) factor_back[i * D + j] += P[i * D + l] * g.factor()[l * D + j];
    return GaussianMixture(g.weights(), std::move(back), std::move(factor_back));
}

GaussianMixture GaussianMixture::widened(const View& x) const {
    auto wider = [&](double log_factor) {
        std::vector<double> factor(factor_);
        for (double& l : factor) l *= std::exp(0.5 * log_factor);
        return GaussianMixture(weights_, means_, std::move(factor));
    };
    auto likelihood = [&](double log_factor) {  // nats, all rows
        const std::vector<double> log_p = wider(log_factor).log_densities(x);
        return std::accumulate(log_p.begin(), log_p.end(), 0.0);
    };
    const double golden = 0.5 * (std::sqrt(5.0) - 1);
    double low = 0, high = std::log(most_widening);
    while (high - low > 0.02) {
        const double step = golden * (high - low);
        if (likelihood(high - step) > likelihood(low + step))
            high = low + step;
        else
            low = high - step;
    }
    const double best = 0.5 * (low + high);
    return likelihood(best) > likelihood(0) ? wider(best) : *this;
}

std::vector<double> GaussianMixture::log_densities(const View& x) const {
    if (x.columns() != dimensions_)
        throw Error(text("a density of rows of ", dimensions_, " numbers was asked about ", x.shape));
    std::vector<float> shares;
    std::vector<double> log_p;
    for (std::int64_t first = 0; first < x.rows(); first += chunk) {
        const auto part = expectation(*this, rows_of(x, first, std::min(chunk, x.rows() - first)), shares);
        log_p.insert(log_p.end(), part.begin(), part.end());
    }
    return log_p;
}

}  // namespace masquerade

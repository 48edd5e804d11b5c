// SPDX-License-Identifier: MIT
// Fits mixtures of Gaussians to rows, and computes the densities of rows. Distances are measured between whitened rows
// and whitened means: directions with a small variance then count as much as directions with a large one, and float is
// precise enough. The distances of a chunk of rows are computed as one matrix product with the means.
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

constexpr std::int64_t chunk = 1024;  // number of rows per matrix product
constexpr double least_variance = 1e-6, most_widening = 100;
constexpr double strength = 10;  // in fit(): weight of the covariance of all rows, in rows

// Returns the whitened rows (n,D), which are (x - middle) inverse^T for x(n,D).
std::vector<float> whitened(const View& x, const GaussianMixture::Whitened& w) {
    const std::int64_t n = x.rows(), D = x.columns();
    std::vector<float> centred, y(std::size_t(n * D));
    const float* from = x.as<float>();
    for (std::int64_t i = 0; i < n * D; i++) centred.push_back(float(double(from[i]) - w.middle[std::size_t(i % D)]));
    linear_forward(view_of(centred, {n, D}, "mixture.centred"), view_of(w.inverse, {D, D}, "mixture.inverse"), View{},
                   view_of(y, {n, D}, "mixture.whitened"));
    return y;
}

// Calls use(n, s, square) for each row n of x(N,D), on several threads. square is |y|^2 for the whitened row y. s[k] is
// log w_k - |y - m_k|^2 / 2 + square / 2 for component k with the whitened mean m_k.
template <class Use>
void each_row(const GaussianMixture& g, const View& x, Use use) {
    const std::int64_t D = g.dimensions(), M = g.components();
    const GaussianMixture::Whitened& w = g.whitened();
    std::vector<float> scores;
    for (std::int64_t first = 0; first < x.rows(); first += chunk) {
        const View part = rows_of(x, first, std::min(chunk, x.rows() - first));
        const std::int64_t n = part.rows();
        const std::vector<float> y = whitened(part, w);
        scores.resize(std::size_t(n * M));
        linear_forward(view_of(y, {n, D}, "mixture.whitened"), view_of(w.means, {M, D}, "mixture.means"),
                       view_of(w.constants, {M}, "mixture.constants"), view_of(scores, {n, M}, "mixture.scores"));
        parallel_for(n, 16, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; r++) {
                const float* row = y.data() + r * D;
                use(std::size_t(first + r), scores.data() + r * M,
                    double(sum(OneLane{}, int(D), [=](int i) { return row[i] * row[i]; })));
            }
        });
    }
}

// Returns the sum of the outer products r^T r of the rows r of t(n,D) with themselves, (D,D).
std::vector<double> outer_products(const std::vector<float>& t, std::int64_t n, std::int64_t D) {
    std::vector<float> sums(std::size_t(D * D));
    View rows = view_of(t, {n, D}, "mixture.rows"), to = view_of(sums, {D, D}, "mixture.covariance");
    linear_backward(rows, rows, to, Grad{}, Grad{to, false}, Grad{});  // reads no weight, so `to` gives only its shape
    return {sums.begin(), sums.end()};
}

// Returns the covariance of all rows. `floor` times the mean variance, but at least least_variance, is added to its
// diagonal.
std::vector<double> covariance_of(const View& x, double floor) {
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
    return covariance;
}

std::vector<double> factor_of(std::vector<double> covariance, std::size_t D) {
    if (!cholesky(covariance.data(), int(D)))
        throw BadInput(text("the covariance of rows of ", D, " numbers is not positive definite; is one infinite?"));
    return covariance;
}

}  // namespace

// Draws one row per component, and assigns every row to the nearest drawn row. The mean of a component is the mean of
// its rows, and its weight is proportional to the number of its rows plus one (add-one smoothing). The covariance is
// the weighted average of two covariances: that of the N rows around the means of their components has the weight N;
// that of all rows around their common mean, with the floor, has the weight `strength`.
GaussianMixture GaussianMixture::fit(const View& x, int components, double floor, std::uint64_t seed) {
    if (!x || x.count() == 0) throw BadInput("a mixture needs at least one row to be fitted to");
    if (components < 1 || !(floor >= 0))
        throw BadUsage(text("a mixture of ", components, " components with the floor ", floor,
                            "; expected at least 1, and a floor from 0"));
    const std::size_t N = std::size_t(x.rows()), D = std::size_t(x.columns());
    const float* const rows = x.as<float>();
    std::vector<double> covariance = covariance_of(x, floor);
    std::vector<double> means;
    for (std::size_t n : drawn(N, std::size_t(components), Sequence(seed, "mixture.start")))  // without replacement
        means.insert(means.end(), rows + n * D, rows + (n + 1) * D);
    const std::size_t M = means.size() / D;
    std::vector<std::size_t> nearest(N);
    each_row(GaussianMixture(std::vector<double>(M, 1 / double(M)), means, factor_of(covariance, D)), x,
             [&](std::size_t n, const float* s, double) { nearest[n] = std::size_t(std::max_element(s, s + M) - s); });
    std::vector<double> counts(M), sums(M * D), weights;
    for (std::size_t n = 0; n < N; n++) {
        counts[nearest[n]]++;
        for (std::size_t i = 0; i < D; i++) sums[nearest[n] * D + i] += double(rows[n * D + i]);
    }
    for (std::size_t k = 0; k < M; k++) {
        weights.push_back((counts[k] + 1) / double(N + M));
        for (std::size_t i = k * D; counts[k] > 0 && i < (k + 1) * D; i++) means[i] = sums[i] / counts[k];
    }
    std::vector<float> around;
    for (std::size_t i = 0; i < N * D; i++)
        around.push_back(float(double(rows[i]) - means[nearest[i / D] * D + i % D]));
    const std::vector<double> products = outer_products(around, x.rows(), x.columns());
    for (std::size_t i = 0; i < D * D; i++)
        covariance[i] = (products[i] + strength * covariance[i]) / (double(N) + strength);
    return GaussianMixture(std::move(weights), std::move(means), factor_of(covariance, D));
}

GaussianMixture GaussianMixture::widened(const View& x) const {
    auto wider = [&](double log_factor) {
        std::vector<double> factor(factor_);
        for (double& l : factor) l *= std::exp(0.5 * log_factor);
        return GaussianMixture(weights_, means_, std::move(factor));
    };
    auto likelihood = [&](double log_factor) {  // log-likelihood of all rows with this factor, in nats
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
    std::vector<double> log_p(std::size_t(x.rows()));
    each_row(*this, x, [&](std::size_t n, const float* s, double square) {
        const float most = top(OneLane{}, components(), [=](int k) { return s[k]; });
        const float total =
            sum(OneLane{}, components(), [=](int k) { return exp_of(clamp_of(s[k] - most, -80.0f, 0.0f)); });
        log_p[n] = whitened_.constant - 0.5 * square + double(most) + std::log(double(total));
    });
    return log_p;
}

}  // namespace masquerade

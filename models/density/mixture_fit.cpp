// SPDX-License-Identifier: MIT
// Expectation and maximisation, in the space where the covariance of all rows is 1: directions that hardly vary count as
// much as the others there, and float is enough. A round is two matrix products over rows and components; their
// (N,M) shares exist for a chunk of rows at a time.
#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/math/scalar.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/ops.h"
#include "models/density/cholesky.h"
#include "models/density/mixture.h"
#include "models/density/rows.h"

namespace masquerade {
namespace {

constexpr std::int64_t chunk = 1024;  // rows at a time
constexpr double least_variance = 1e-6, least_count = 1e-3, most_widening = 100;
constexpr float least_share =
    1e-8f;  // of a row in a component; below it is 0: products of denormal numbers are slow

// to(n,D) = (x - middle) inverse^T of the rows [first, first + n)
void whiten(const View& x, std::int64_t first, std::int64_t n, const std::vector<double>& middle,
            const std::vector<float>& inverse, std::vector<float>& centred, std::vector<float>& to) {
    const std::int64_t D = x.columns();
    centred.resize(std::size_t(n * D));
    to.resize(std::size_t(n * D));
    const float* from = x.as<float>() + first * D;
    for (std::int64_t r = 0; r < n; r++)
        for (std::int64_t i = 0; i < D; i++)
            centred[std::size_t(r * D + i)] = float(double(from[r * D + i]) - middle[std::size_t(i)]);
    linear_forward(view_of(centred, {n, D}, "mixture.centred"), view_of(inverse, {D, D}, "mixture.inverse"),
                   View{}, view_of(to, {n, D}, "mixture.whitened"));
}

// Of rows y(n,D) that are whitened: log p (n), and shares(n,M), the posterior of the components.
void expectation(const GaussianMixture& g, const std::vector<float>& y, std::int64_t n,
                 std::vector<float>& shares, double* log_p) {
    const std::int64_t D = g.dimensions(), M = g.components();
    const GaussianMixture::Whitened& w = g.whitened();
    shares.resize(std::size_t(n * M));
    linear_forward(view_of(y, {n, D}, "mixture.whitened"), view_of(w.means, {M, D}, "mixture.means"),
                   view_of(w.constants, {M}, "mixture.constants"), view_of(shares, {n, M}, "mixture.shares"));
    float* all = shares.data();
    const float* rows = y.data();
    const double constant = w.constant;
    parallel_for(n, 16, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; r++) {
            float* s = all + r * M;
            const float* row = rows + r * D;
            const float most = top(OneLane{}, int(M), [=](int k) { return s[k]; });
            each(OneLane{}, int(M), [=](int k) { s[k] = exp_of(clamp_of(s[k] - most, -80.0f, 0.0f)); });
            const float total = sum(OneLane{}, int(M), [=](int k) { return s[k]; });
            each(OneLane{}, int(M),
                 [=](int k) { s[k] = choose(s[k] < least_share * total, 0.0f, s[k] / total); });
            const double square = double(sum(OneLane{}, int(D), [=](int i) { return row[i] * row[i]; }));
            log_p[r] = constant - 0.5 * square + double(most) + std::log(double(total));
        }
    });
}

// The rows y(N,D) in the space where their covariance, with the floor, is 1.
struct Pool {
    std::vector<double> mean, factor;
    std::vector<float> rows;
};

// sums(D,D) of t t^T over the rows of t(n,D)
std::vector<double> outer_products(const std::vector<float>& t, std::int64_t n, std::int64_t D) {
    std::vector<float> sums(std::size_t(D * D));
    View rows = view_of(t, {n, D}, "mixture.rows"), to = view_of(sums, {D, D}, "mixture.covariance");
    linear_backward(rows, rows, to, Grad{}, Grad{to, false}, Grad{});  // of the weight only the shape is read
    return {sums.begin(), sums.end()};
}

Pool pool_of(const View& x, double floor) {
    const std::int64_t N = x.rows(), D = x.columns();
    const float* from = x.as<float>();
    Pool pool;
    pool.mean.assign(std::size_t(D), 0);
    for (std::int64_t i = 0; i < N * D; i++) pool.mean[std::size_t(i % D)] += double(from[i]) / double(N);
    for (double m : pool.mean)
        if (!std::isfinite(m)) throw BadInput("a mixture cannot be fitted to numbers that are not finite");
    std::vector<float> centred(std::size_t(N * D));
    for (std::int64_t i = 0; i < N * D; i++)
        centred[std::size_t(i)] = float(double(from[i]) - pool.mean[std::size_t(i % D)]);
    pool.factor = outer_products(centred, N, D);
    double variance = 0;
    for (double& c : pool.factor) c /= double(N);
    for (std::int64_t i = 0; i < D; i++) variance += pool.factor[std::size_t(i * D + i)] / double(D);
    for (std::int64_t i = 0; i < D; i++)
        pool.factor[std::size_t(i * D + i)] += std::max(floor * variance, least_variance);
    if (!cholesky(pool.factor.data(), int(D)))
        throw BadInput(text("the covariance of ", N, " rows of ", D,
                            " numbers is not positive definite; is one infinite?"));
    std::vector<double> inverse(pool.factor);
    invert_lower(inverse.data(), int(D));
    whiten(x, 0, N, pool.mean, {inverse.begin(), inverse.end()}, centred, pool.rows);
    return pool;
}

// What a round finds: the rows that belong to each component, their sum, and the log likelihood.
struct Statistics {
    std::vector<double> counts;  // (M)
    std::vector<float> sums;     // (M,D)
    double log_likelihood = 0;
};

Statistics statistics_of(const GaussianMixture& g, const View& rows) {
    const std::int64_t N = rows.rows(), D = rows.columns(), M = g.components();
    Statistics found;
    found.counts.assign(std::size_t(M), 0);
    found.sums.assign(std::size_t(M * D), 0);
    std::vector<float> centred, y, shares;
    std::vector<double> log_p(std::size_t(std::min(chunk, N)));
    for (std::int64_t first = 0; first < N; first += chunk) {
        const std::int64_t n = std::min(chunk, N - first);
        whiten(rows, first, n, g.whitened().middle, g.whitened().inverse, centred, y);
        expectation(g, y, n, shares, log_p.data());
        for (std::int64_t r = 0; r < n; r++) found.log_likelihood += log_p[std::size_t(r)];
        double* counts = found.counts.data();
        const float* s = shares.data();
        parallel_for(M, 128, [=](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = 0; r < n; r++)
                for (std::int64_t k = begin; k < end; k++) counts[k] += double(s[r * M + k]);
        });
        View part = rows, sums = view_of(found.sums, {M, D}, "mixture.sums");
        part.data = rows.as<float>() + first * D;
        part.shape = {n, D};
        linear_backward(view_of(shares, {n, M}, "mixture.shares"), part, sums, Grad{}, Grad{sums, true},
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

// sum_k log w_k - strength/2 (log det S + trace S^-1): the log densities of the priors, up to constants.
double log_prior(const GaussianMixture& g, double strength) {
    const std::size_t D = std::size_t(g.dimensions());
    double determinant = 0, trace = 0, weights = 0;
    for (std::size_t i = 0; i < D; i++) determinant += 2 * std::log(g.factor()[i * D + i]);
    for (float x : g.whitened().inverse) trace += double(x) * double(x);
    for (double w : g.weights()) weights += std::log(w);
    return weights - 0.5 * strength * (determinant + trace);
}

// M different rows as first means, in the order of a shuffle.
std::vector<double> first_means(const std::vector<float>& rows, std::int64_t N, std::int64_t D,
                                int components, std::uint64_t seed) {
    const std::int64_t M = std::min<std::int64_t>(components, N);
    std::vector<std::int64_t> order(static_cast<std::size_t>(N));
    for (std::int64_t n = 0; n < N; n++) order[std::size_t(n)] = n;
    Sequence random(seed, "mixture.start");
    std::vector<double> means;
    for (std::int64_t k = 0; k < M; k++) {
        std::swap(order[std::size_t(k)], order[std::size_t(k + random.below(std::uint32_t(N - k)))]);
        auto row = rows.begin() + order[std::size_t(k)] * D;
        means.insert(means.end(), row, row + D);
    }
    return means;
}

}  // namespace

GaussianMixture GaussianMixture::fit(const View& x, const MixtureOptions& o, std::vector<double>* objective) {
    if (!x || x.count() == 0) throw BadInput("a mixture needs at least one row to be fitted to");
    if (o.components < 1 || !(o.strength > 0) || !(o.floor >= 0))
        throw BadUsage(text("a mixture of ", o.components, " components, strength ", o.strength, ", floor ",
                            o.floor, "; expected at least 1, above 0, at least 0"));
    const std::int64_t N = x.rows(), D = x.columns();
    const Pool pool = pool_of(x, o.floor);
    const View rows = view_of(pool.rows, {N, D}, "mixture.rows");
    const std::vector<double> products = outer_products(pool.rows, N, D);
    std::vector<double> means = first_means(pool.rows, N, D, o.components, o.seed),
                        factor(std::size_t(D * D), 0.0);
    const std::size_t M = means.size() / std::size_t(D);
    for (std::int64_t i = 0; i < D; i++) factor[std::size_t(i * D + i)] = M > 1 ? 0.7 : 1;
    GaussianMixture g(std::vector<double>(M, 1 / double(M)), std::move(means), std::move(factor));
    double before = -INFINITY;
    for (int round = 0; round < o.rounds; round++) {
        Statistics found = statistics_of(g, rows);
        const double now = (found.log_likelihood + log_prior(g, o.strength)) / double(N);
        if (objective) objective->push_back(now);
        if (now - before < o.tolerance) break;
        before = now;
        g = maximisation(found, products, o.strength, g.means());
    }
    // back: x = mean + P y
    std::vector<double> back, factor_back(std::size_t(D * D), 0.0);
    for (std::size_t k = 0; k < M; k++)
        for (std::int64_t i = 0; i < D; i++) {
            double sum = pool.mean[std::size_t(i)];
            for (std::int64_t j = 0; j <= i; j++)
                sum += pool.factor[std::size_t(i * D + j)] * g.means()[k * std::size_t(D) + std::size_t(j)];
            back.push_back(sum);
        }
    for (std::int64_t i = 0; i < D; i++)
        for (std::int64_t j = 0; j <= i; j++)
            for (std::int64_t l = j; l <= i; l++)
                factor_back[std::size_t(i * D + j)] +=
                    pool.factor[std::size_t(i * D + l)] * g.factor()[std::size_t(l * D + j)];
    return GaussianMixture(g.weights(), std::move(back), std::move(factor_back));
}

GaussianMixture GaussianMixture::widened(const View& x, double* by) const {
    const std::int64_t N = x.rows(), D = dimensions_, M = components();
    if (x.columns() != D || N < 1)
        throw Error(text("a mixture of rows of ", D, " numbers was to be widened to ", x.shape));
    // squares (N,M) of the whitened distances between rows and means
    std::vector<float> centred, y, squares(std::size_t(N * M));
    whiten(x, 0, N, whitened_.middle, whitened_.inverse, centred, y);
    linear_forward(view_of(y, {N, D}, "mixture.whitened"), view_of(whitened_.means, {M, D}, "mixture.means"),
                   View{}, view_of(squares, {N, M}, "mixture.squares"));
    std::vector<double> weights, own;  // log w_k, |m_k|^2
    for (std::int64_t k = 0; k < M; k++) {
        weights.push_back(std::log(weights_[std::size_t(k)]));
        own.push_back(2 * (weights.back() - double(whitened_.constants[std::size_t(k)])));
    }
    std::vector<double> log_p(static_cast<std::size_t>(N));
    for (std::int64_t n = 0; n < N; n++) {
        const float* row = y.data() + n * D;
        const double square = double(sum(OneLane{}, int(D), [=](int i) { return row[i] * row[i]; }));
        for (std::int64_t k = 0; k < M; k++) {
            float& s = squares[std::size_t(n * M + k)];
            s = float(std::max(0.0, square + own[std::size_t(k)] - 2 * double(s)));
        }
    }
    auto likelihood = [&](double log_factor) {  // nats a row, up to a constant
        const double half = 0.5 * std::exp(-log_factor);
        const float* all = squares.data();
        const double* w = weights.data();
        double* p = log_p.data();
        parallel_for(N, 16, [=](std::int64_t begin, std::int64_t end) {
            std::vector<float> scores(static_cast<std::size_t>(M));
            float* s = scores.data();
            for (std::int64_t n = begin; n < end; n++) {
                for (std::int64_t k = 0; k < M; k++) s[k] = float(w[k] - half * double(all[n * M + k]));
                const float most = top(OneLane{}, int(M), [=](int k) { return s[k]; });
                p[n] = double(most) + std::log(double(sum(OneLane{}, int(M), [=](int k) {
                           return exp_of(clamp_of(s[k] - most, -80.0f, 0.0f));
                       })));
            }
        });
        double total = 0;
        for (double each : log_p) total += each / double(N);
        return total - 0.5 * double(D) * log_factor;
    };
    const double golden = 0.5 * (std::sqrt(5.0) - 1);
    double low = 0, high = std::log(most_widening), a = high - golden * (high - low),
           b = low + golden * (high - low);
    double at_a = likelihood(a), at_b = likelihood(b);
    while (high - low > 0.02) {
        if (at_a > at_b) {
            high = b, b = a, at_b = at_a;
            at_a = likelihood(a = high - golden * (high - low));
        } else {
            low = a, a = b, at_a = at_b;
            at_b = likelihood(b = low + golden * (high - low));
        }
    }
    const double best = 0.5 * (low + high), factor = likelihood(best) > likelihood(0) ? std::exp(best) : 1;
    if (by) *by = factor;
    std::vector<double> wider(factor_);
    for (double& l : wider) l *= std::sqrt(factor);
    return GaussianMixture(weights_, means_, std::move(wider));
}

std::vector<double> GaussianMixture::log_densities(const View& x) const {
    if (x.columns() != dimensions_)
        throw Error(text("a density of rows of ", dimensions_, " numbers was asked about ", x.shape));
    std::vector<float> centred, y, shares;
    std::vector<double> log_p(static_cast<std::size_t>(x.rows()));
    for (std::int64_t first = 0; first < x.rows(); first += chunk) {
        const std::int64_t n = std::min(chunk, x.rows() - first);
        whiten(x, first, n, whitened_.middle, whitened_.inverse, centred, y);
        expectation(*this, y, n, shares, log_p.data() + first);
    }
    return log_p;
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Mixtures of Gaussians: their draws, their fit to rows, and the densities of rows. Distances are measured between
// whitened rows and whitened means: directions with a small variance then count as much as directions with a large
// variance. All numbers have similar sizes, so float is precise enough. The distances of a chunk of rows are computed
// as one matrix product with the means.
#include "models/density/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "engine/math/lanes.h"
#include "engine/math/scalar.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/ops.h"
#include "models/density/cholesky.h"
#include "models/latent/normals.h"

namespace masquerade {

GaussianMixture::GaussianMixture(Numbers weights, Numbers means, Numbers factor)
    : weights_(std::move(weights)), means_(std::move(means)), factor_(std::move(factor)) {
    const std::size_t M = weights_.size(), D = M ? means_.size() / M : 0;
    if (M == 0 || D == 0 || means_.size() != M * D || factor_.size() != D * D)
        throw BadInput("a mixture has ", M, " weights, ", means_.size(), " numbers of means and ", factor_.size(),
                       " of the factor; expected M, M D and D D");
    dimensions_ = D;
    double total = 0;
    bool good = true;
    for (double w : weights_) total += w, good &= w > 0;
    for (double m : means_) good &= std::isfinite(m);
    for (std::size_t i = 0; i < D * D; i++) {
        good &= std::isfinite(factor_[i]);
        if (i / D == i % D) good &= factor_[i] > 0;
        if (i / D < i % D) good &= factor_[i] == 0;
    }
    if (!good || !(std::fabs(total - 1) < 1e-6))
        throw BadInput("a mixture of ", M, " components in ", D,
                       " dimensions is no density: its weights must be positive and sum to 1 (they sum to ", total,
                       "), its means finite, its factor lower triangular with a positive diagonal");
    whitened_.middle.assign(D, 0);
    for (std::size_t i = 0; i < M * D; i++) whitened_.middle[i % D] += weights_[i / D] * means_[i];
    Numbers inverse(factor_);
    invert_lower(inverse.data(), D);
    whitened_.inverse.assign(inverse.begin(), inverse.end());
    whitened_.constant = -0.5 * D * std::log(2 * 3.14159265358979323846);
    for (std::size_t i = 0; i < D; i++) whitened_.constant -= std::log(factor_[i * D + i]);
    for (std::size_t k = 0; k < M; k++) {
        double square = 0;
        for (std::size_t i = 0; i < D; i++) {
            const double *row = inverse.data() + i * D, *mean = means_.data() + k * D;
            const double* middle = whitened_.middle.data();
            double white = sum(OneLane{}, i + 1, [=](int j) { return row[j] * (mean[j] - middle[j]); });
            whitened_.means.push_back(white);
            square += white * white;
        }
        whitened_.constants.push_back(std::log(weights_[k]) - 0.5 * square);
    }
}

namespace {

// Draws a component with the probabilities `weights`, whose sum is 1, and returns the index of the component. Uses 64
// random bits. If rounding makes the sum of the weights too small, the missing probability goes to the last component.
std::size_t chosen(const Numbers& weights, const Stream& stream, std::uint32_t line) {
    Four words = stream.at(line, 0, 0);
    double u = (double(words[0]) + (double(words[1]) + 0.5) * 0x1p-32) * 0x1p-32, below = weights[0];
    std::size_t k = 0;
    while (k + 1 < weights.size() && u >= below) below += weights[++k];
    return k;
}

}  // namespace

Numbers GaussianMixture::draw(const Stream& stream, std::uint32_t line, double temperature) const {
    const std::size_t D = dimensions_, k = chosen(weights_, stream, line);
    const Numbers e = normals(stream, line, 1, D);
    Numbers x(means_.begin() + k * D, means_.begin() + (k + 1) * D);
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j <= i; j++) x[i] += temperature * factor_[i * D + j] * e[j];
    return x;
}

// The dimensions are reordered: first the dimensions F of the given numbers, then the dimensions R of the numbers that
// are drawn. In this order, the covariance is L L^T with a lower triangular L. The subscripts F and R denote parts of
// vectors and of L. For each component, let m be its mean, and y = L_FF^-1 (x_F - m_F). Then x_F has the likelihood
// exp(-|y|^2 / 2) under the component, up to a factor that is common to all components. A component is drawn with a
// probability proportional to its weight times this likelihood. Then x_R = m_R + L_RF y + temperature * L_RR e, where e
// is standard normal.
Numbers GaussianMixture::draw_rest(Numbers x, int from, int to, const Stream& stream, std::uint32_t line,
                                   double temperature) const {
    const std::size_t D = dimensions_, rest = to - from, known = D - rest;
    std::vector<std::size_t> place(D);
    std::iota(place.begin(), place.end(), 0);
    std::rotate(place.begin() + from, place.begin() + to, place.end());
    Numbers l(D * D);
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j < D; j++)
            for (std::size_t k = 0; k <= std::min(place[i], place[j]); k++)
                l[i * D + j] += factor_[place[i] * D + k] * factor_[place[j] * D + k];
    if (!cholesky(l.data(), dimensions_)) throw Error("a mixture's covariance is not positive definite");
    Numbers y(weights_.size() * known), logs;
    for (std::size_t k = 0; k < weights_.size(); k++) {
        double* const at = y.data() + k * known;  // y of component k, `known` numbers; never read if known is 0
        double square = 0;
        for (std::size_t i = 0; i < known; i++) {
            double sum = x[place[i]] - means_[k * D + place[i]];
            for (std::size_t j = 0; j < i; j++) sum -= l[i * D + j] * at[j];
            at[i] = sum / l[i * D + i];
            square += at[i] * at[i];
        }
        logs.push_back(std::log(weights_[k]) - square / 2);
    }
    const double top = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (double& each : logs) sum += each = std::exp(each - top);
    for (double& each : logs) each /= sum;
    const std::size_t k = chosen(logs, stream, line);
    const Numbers e = normals(stream, line, 1, rest);
    for (std::size_t i = known; i < D; i++) {
        double& number = x[place[i]] = means_[k * D + place[i]];
        for (std::size_t j = 0; j < known; j++) number += l[i * D + j] * y[k * known + j];
        for (std::size_t j = known; j <= i; j++) number += temperature * l[i * D + j] * e[j - known];
    }
    return x;
}

namespace {

constexpr std::int64_t chunk = 1024;  // number of rows per matrix product
constexpr double least_variance = 1e-6, most_widening = 100;
// fit() averages two covariances. The covariance of the N rows around the means of their components has the weight N.
// The covariance of all rows around their common mean has the weight `strength`.
constexpr double strength = 10;

// Returns the whitened rows (n,D) of x(n,D): row i is (x_i - m) L^-T, where m = w.middle is the mean of the mixture and
// L^-1 = w.inverse is the inverse of the Cholesky factor.
std::vector<float> whitened(const View& x, const GaussianMixture::Whitened& w) {
    const std::int64_t n = x.rows(), D = x.columns();
    std::vector<float> centred, y(n * D);
    const float* from = x.as<float>();
    for (std::int64_t i = 0; i < n * D; i++) centred.push_back(from[i] - w.middle[i % D]);
    linear_forward(view_of(centred, {n, D}, "mixture.centred"), view_of(w.inverse, {D, D}, "mixture.inverse"), View{},
                   view_of(y, {n, D}, "mixture.whitened"));
    return y;
}

// Calls use(n, s, square) for each row n of x(N,D), on several threads. square is |y|^2 for the whitened row y. s[k] is
// log w_k - |y - m_k|^2 / 2 + square / 2 for component k, which has the weight w_k and the whitened mean m_k. The last
// term cancels |y|^2 / 2, so s[k] is linear in y, and a matrix product computes it.
template <class Use>
void each_row(const GaussianMixture& g, const View& x, Use use) {
    const std::int64_t D = g.dimensions(), M = g.components();
    const GaussianMixture::Whitened& w = g.whitened();
    std::vector<float> scores;
    for (std::int64_t first = 0; first < x.rows(); first += chunk) {
        const View part = rows_of(x, first, std::min(chunk, x.rows() - first));
        const std::int64_t n = part.rows();
        const std::vector<float> y = whitened(part, w);
        scores.resize(n * M);
        linear_forward(view_of(y, {n, D}, "mixture.whitened"), view_of(w.means, {M, D}, "mixture.means"),
                       view_of(w.constants, {M}, "mixture.constants"), view_of(scores, {n, M}, "mixture.scores"));
        parallel_for(n, 16, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; r++) {
                const float* row = y.data() + r * D;
                use(first + r, scores.data() + r * M, sum(OneLane{}, D, [=](int i) { return row[i] * row[i]; }));
            }
        });
    }
}

// Returns t^T t, (D,D), for t(n,D): the sum of the outer products of the rows with themselves.
Numbers outer_products(const std::vector<float>& t, std::int64_t n, std::int64_t D) {
    std::vector<float> sums(D * D);
    View rows = view_of(t, {n, D}, "mixture.rows"), to = view_of(sums, {D, D}, "mixture.covariance");
    linear_backward(rows, rows, to, Grad{}, Grad{to, false}, Grad{});  // the third argument, a weight, is not read
    return {sums.begin(), sums.end()};
}

// Returns the covariance of all rows, with max(floor * v, least_variance) added to its diagonal, where v is the mean
// variance of the D numbers.
Numbers covariance_of(const View& x, double floor) {
    const std::int64_t N = x.rows(), D = x.columns();
    const float* from = x.as<float>();
    Numbers mean(D, 0.0);
    for (std::int64_t i = 0; i < N * D; i++) mean[i % D] += double(from[i]) / N;
    for (double m : mean)
        if (!std::isfinite(m)) throw BadInput("a mixture cannot be fitted to numbers that are not finite");
    std::vector<float> centred;
    for (std::int64_t i = 0; i < N * D; i++) centred.push_back(from[i] - mean[i % D]);
    Numbers covariance = outer_products(centred, N, D);
    double variance = 0;
    for (double& c : covariance) c /= N;
    for (std::int64_t i = 0; i < D * D; i += D + 1) variance += covariance[i] / D;
    for (std::int64_t i = 0; i < D * D; i += D + 1) covariance[i] += std::max(floor * variance, least_variance);
    return covariance;
}

Numbers factor_of(Numbers covariance, std::size_t D) {
    if (!cholesky(covariance.data(), D))
        throw BadInput("the covariance of rows of ", D, " numbers is not positive definite; is one infinite?");
    return covariance;
}

}  // namespace

// Draws one row per component, and assigns every row to the component of the nearest drawn row. The mean of a component
// is the mean of its rows; if it has no rows, the mean is the drawn row. The weight of a component is proportional to
// the number of its rows plus one (add-one smoothing). The covariance S is the weighted average of two covariances. The
// covariance of the N rows around the means of their components has the weight N. The covariance of the rows around
// their common mean, with the floor added, has the weight `strength`.
GaussianMixture GaussianMixture::fit(const View& x, int components, double floor, std::uint64_t seed) {
    if (!x || x.count() == 0) throw BadInput("a mixture needs at least one row to be fitted to");
    if (components < 1 || !(floor >= 0))
        throw BadUsage("a mixture of ", components, " components with the floor ", floor,
                       "; expected at least 1, and a floor from 0");
    const std::size_t N = x.rows(), D = x.columns();
    const float* const rows = x.as<float>();
    Numbers covariance = covariance_of(x, floor);
    Numbers means;
    for (std::size_t n : drawn(N, components, Sequence(seed, "mixture.start")))  // drawn without replacement
        means.insert(means.end(), rows + n * D, rows + (n + 1) * D);
    const std::size_t M = means.size() / D;
    std::vector<std::size_t> nearest(N);
    each_row(GaussianMixture(Numbers(M, 1.0 / M), means, factor_of(covariance, D)), x,
             [&](std::size_t n, const float* s, double) { nearest[n] = std::max_element(s, s + M) - s; });
    Numbers counts(M), sums(M * D), weights;
    for (std::size_t n = 0; n < N; n++) {
        counts[nearest[n]]++;
        for (std::size_t i = 0; i < D; i++) sums[nearest[n] * D + i] += rows[n * D + i];
    }
    for (std::size_t k = 0; k < M; k++) {
        weights.push_back((counts[k] + 1) / (N + M));
        for (std::size_t i = k * D; counts[k] > 0 && i < (k + 1) * D; i++) means[i] = sums[i] / counts[k];
    }
    std::vector<float> around;
    for (std::size_t i = 0; i < N * D; i++) around.push_back(rows[i] - means[nearest[i / D] * D + i % D]);
    const Numbers products = outer_products(around, x.rows(), x.columns());
    for (std::size_t i = 0; i < D * D; i++) covariance[i] = (products[i] + strength * covariance[i]) / (N + strength);
    return GaussianMixture(std::move(weights), std::move(means), factor_of(covariance, D));
}

GaussianMixture GaussianMixture::widened(const View& x) const {
    auto wider = [&](double log_factor) {
        Numbers factor(factor_);
        for (double& l : factor) l *= std::exp(0.5 * log_factor);
        return GaussianMixture(weights_, means_, std::move(factor));
    };
    auto likelihood = [&](double log_factor) {  // log p of all rows in nats, with S multiplied by exp(log_factor)
        const Numbers log_p = wider(log_factor).log_densities(x);
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

Numbers GaussianMixture::log_densities(const View& x) const {
    if (x.columns() != dimensions_)
        throw Error("a density of rows of ", dimensions_, " numbers was asked about ", x.shape);
    Numbers log_p(x.rows());
    each_row(*this, x, [&](std::size_t n, const float* s, double square) {
        const float most = top(OneLane{}, components(), [=](int k) { return s[k]; });
        const float total =
            sum(OneLane{}, components(), [=](int k) { return exp_of(clamp_of(s[k] - most, -80.0f, 0.0f)); });
        log_p[n] = whitened_.constant - 0.5 * square + most + std::log(double(total));
    });
    return log_p;
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "models/density/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "engine/math/lanes.h"
#include "engine/math/normal.h"
#include "models/density/cholesky.h"

namespace masquerade {

GaussianMixture::GaussianMixture(std::vector<double> weights, std::vector<double> means, std::vector<double> factor)
    : weights_(std::move(weights)), means_(std::move(means)), factor_(std::move(factor)) {
    const std::size_t M = weights_.size(), D = M ? means_.size() / M : 0;
    if (M == 0 || D == 0 || means_.size() != M * D || factor_.size() != D * D)
        throw BadInput(text("a mixture has ", M, " weights, ", means_.size(), " numbers of means and ", factor_.size(),
                            " of the factor; expected M, M D and D D"));
    dimensions_ = int(D);
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
        throw BadInput(text("a mixture of ", M, " components in ", D,
                            " dimensions is no density: its weights must be positive and sum to 1 (they sum to ", total,
                            "), its means finite, its factor lower triangular with a positive diagonal"));
    whitened_.middle.assign(D, 0);
    for (std::size_t i = 0; i < M * D; i++) whitened_.middle[i % D] += weights_[i / D] * means_[i];
    std::vector<double> inverse(factor_);
    invert_lower(inverse.data(), int(D));
    whitened_.inverse.assign(inverse.begin(), inverse.end());
    whitened_.constant = -0.5 * double(D) * std::log(2 * 3.14159265358979323846);
    for (std::size_t i = 0; i < D; i++) whitened_.constant -= std::log(factor_[i * D + i]);
    for (std::size_t k = 0; k < M; k++) {
        double square = 0;
        for (std::size_t i = 0; i < D; i++) {
            const double *row = inverse.data() + i * D, *mean = means_.data() + k * D;
            const double* middle = whitened_.middle.data();
            double white = sum(OneLane{}, int(i) + 1, [=](int j) { return row[j] * (mean[j] - middle[j]); });
            whitened_.means.push_back(float(white));
            square += white * white;
        }
        whitened_.constants.push_back(float(std::log(weights_[k]) - 0.5 * square));
    }
}

namespace {

// Draws a component with the probabilities `weights`, which add up to 1, from 64 random bits. Returns its index. If
// rounding makes the sum of the weights too small, the missing probability goes to the last component.
std::size_t chosen(const std::vector<double>& weights, const Stream& stream, std::uint32_t line) {
    Four words = stream.at(line, 0, 0);
    double u = (double(words[0]) + (double(words[1]) + 0.5) * 0x1p-32) * 0x1p-32, below = weights[0];
    std::size_t k = 0;
    while (k + 1 < weights.size() && u >= below) below += weights[++k];
    return k;
}

std::vector<double> normals(std::size_t count, const Stream& stream, std::uint32_t line) {
    std::vector<double> e;
    for (std::uint32_t block = 0; e.size() < count; block++) {
        FourNormals n = normal4(stream.at(line, 1, block));
        for (int j = 0; j < 4; j++) e.push_back(double(n[j]));
    }
    return e;
}

}  // namespace

std::vector<double> GaussianMixture::draw(const Stream& stream, std::uint32_t line, double temperature) const {
    const std::size_t D = std::size_t(dimensions_), k = chosen(weights_, stream, line);
    const std::vector<double> e = normals(D, stream, line);
    std::vector<double> x(means_.begin() + std::ptrdiff_t(k * D), means_.begin() + std::ptrdiff_t((k + 1) * D));
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j <= i; j++) x[i] += temperature * factor_[i * D + j] * e[j];
    return x;
}

// The dimensions are reordered, so that the given numbers F precede the numbers R that are drawn; S = L L^T in the new
// order. For each component, let y = L_FF^-1 (x_F - m_F). Then x_F has the likelihood exp(-|y|^2 / 2) under the
// component, up to a factor that is common to all components. A component is drawn with a probability proportional to
// its weight times this likelihood. Then x_R = m_R + L_RF y + L_RR e with normal e, scaled by the temperature.
std::vector<double> GaussianMixture::draw_rest(std::vector<double> x, int from, int to, const Stream& stream,
                                               std::uint32_t line, double temperature) const {
    const std::size_t D = std::size_t(dimensions_), rest = std::size_t(to - from), known = D - rest;
    std::vector<std::size_t> place(D);
    std::iota(place.begin(), place.end(), 0);
    std::rotate(place.begin() + from, place.begin() + to, place.end());
    std::vector<double> l(D * D);
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j < D; j++)
            for (std::size_t k = 0; k <= std::min(place[i], place[j]); k++)
                l[i * D + j] += factor_[place[i] * D + k] * factor_[place[j] * D + k];
    if (!cholesky(l.data(), dimensions_)) throw Error("a mixture's covariance is not positive definite");
    std::vector<double> y(weights_.size() * known), logs;
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
    const std::vector<double> e = normals(rest, stream, line);
    for (std::size_t i = known; i < D; i++) {
        double& number = x[place[i]] = means_[k * D + place[i]];
        for (std::size_t j = 0; j < known; j++) number += l[i * D + j] * y[k * known + j];
        for (std::size_t j = known; j <= i; j++) number += temperature * l[i * D + j] * e[j - known];
    }
    return x;
}

}  // namespace masquerade

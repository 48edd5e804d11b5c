// SPDX-License-Identifier: MIT
// Lab 7, solved. docs/vae.md and docs/ops/gaussian.md derive the formulas.
#include "docs/labs/07/lab.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr double pi = 3.14159265358979323846;

// Returns the log density of x under a normal distribution.
double log_density(double x, double mean, double log_variance) {
    return -(std::log(2 * pi) + log_variance + (x - mean) * (x - mean) * std::exp(-log_variance)) / 2;
}

}  // namespace

void gaussian_sample(int Z, const double* mu, const double* l, const double* e, double* z) {
    for (int i = 0; i < Z; i++) z[i] = mu[i] + std::exp(l[i] / 2) * e[i];
}

void gaussian_sample_backward(int Z, const double* dz, const double* l, const double* e, double* dmu, double* dl) {
    for (int i = 0; i < Z; i++) {
        dmu[i] = dz[i];
        dl[i] = dz[i] * e[i] * std::exp(l[i] / 2) / 2;
    }
}

void gaussian_kl(int Z, const double* mu, const double* l, double* kl) {
    for (int i = 0; i < Z; i++) kl[i] = (mu[i] * mu[i] + std::exp(l[i]) - l[i] - 1) / 2;
}

void gaussian_kl_backward(int Z, const double* dkl, const double* mu, const double* l, double* dmu, double* dl) {
    for (int i = 0; i < Z; i++) {
        dmu[i] = dkl[i] * mu[i];
        dl[i] = dkl[i] * (std::exp(l[i]) - 1) / 2;
    }
}

double log_weight(const Model& model, const double* x, const double* mu, const double* l, const double* e) {
    std::vector<double> z(std::size_t(model.Z), 0);
    gaussian_sample(model.Z, mu, l, e, z.data());
    double sum = 0;
    for (int d = 0; d < model.D; d++) {
        double mean = 0;
        for (int i = 0; i < model.Z; i++) mean += model.A[d * model.Z + i] * z[std::size_t(i)];
        sum += log_density(x[d], mean, 2 * std::log(model.s));
    }
    for (int i = 0; i < model.Z; i++) {
        sum += log_density(z[std::size_t(i)], 0, 0);
        sum -= log_density(z[std::size_t(i)], mu[i], l[i]);
    }
    return sum;
}

double elbo(int S, const double* log_w) {
    double sum = 0;
    for (int s = 0; s < S; s++) sum += log_w[s];
    return sum / S;
}

double importance_weighted(int S, const double* log_w) {
    const double top = *std::max_element(log_w, log_w + S);
    if (std::isinf(top)) return top;
    double sum = 0;
    for (int s = 0; s < S; s++) sum += std::exp(log_w[s] - top);
    return top + std::log(sum / S);
}

double kl_weight(int step, int steps, int cycles, double rise) {
    if (step >= steps) return 1;
    const std::int64_t place = std::int64_t(step) * cycles % steps;  // in the cycle, from 0 to steps - 1
    return std::min(1.0, double(place) / (rise * steps));
}

double free_bits(int B, int Z, double weight, double least, const double* kl, double* dkl) {
    double price = 0;
    for (int i = 0; i < Z; i++) {
        double mean = 0;
        for (int b = 0; b < B; b++) mean += kl[b * Z + i] / B;
        price += weight * std::max(mean, least);
        for (int b = 0; b < B; b++) dkl[b * Z + i] = mean > least ? weight / B : 0;
    }
    return price;
}

void vmf_sample(double kappa, const double* mu, double u, const double* e, double* z) {
    const double w = 1 + std::log(u + (1 - u) * std::exp(-2 * kappa)) / kappa;
    const double along = e[0] * mu[0] + e[1] * mu[1] + e[2] * mu[2];
    double square = 0;
    for (int i = 0; i < 3; i++) square += (e[i] - along * mu[i]) * (e[i] - along * mu[i]);
    for (int i = 0; i < 3; i++) z[i] = w * mu[i] + std::sqrt((1 - w * w) / square) * (e[i] - along * mu[i]);
}

double vmf_kl(double kappa) {
    // The density of w is c exp(kappa (w - 1)). Under the uniform distribution on the sphere, the density of w is 1/2.
    // The KL is the mean of the log of the ratio of the two densities.
    const double q = std::exp(-2 * kappa), c = kappa / (1 - q), mean_w = (1 + q) / (1 - q) - 1 / kappa;
    return std::log(2 * c) + kappa * (mean_w - 1);
}

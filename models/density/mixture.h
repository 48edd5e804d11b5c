// SPDX-License-Identifier: MIT
// A mixture of M Gaussians over rows of D numbers that share one full covariance,
//     p(x) = sum_k w_k N(x; m_k, S),    S = L L^T.
// The fit is a kernel density whose kernels stand at the means of neighbouring rows: the means follow whatever the rows
// lie along, and S says how far and in which directions a row strays from there. The same bits for any number of
// threads.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/random.h"
#include "engine/tensor/view.h"

namespace masquerade {

// Rows of f32 that a vector holds, as the ops take them; what is read through the view is not written.
inline View view_of(const std::vector<float>& numbers, const Shape& shape, const char* path) {
    View v;
    v.data = const_cast<float*>(numbers.data());
    v.shape = shape;
    v.path = path;
    return v;
}

class GaussianMixture {
  public:
    GaussianMixture() = default;
    // weights (M) sum to 1, means (M,D), factor (D,D) = L, lower triangular. BadInput where they are no such thing.
    GaussianMixture(std::vector<double> weights, std::vector<double> means, std::vector<double> factor);

    // x(N,D), f32. As many components, or as there are rows. `floor` of a variance, as a share of the mean one. BadInput
    // where x has no row or numbers that are not finite.
    static GaussianMixture fit(const View& x, int components, double floor, std::uint64_t seed);

    // The same with S times the factor, of at least 1, under which rows x(N,D), f32, that were not fitted are most
    // likely:
    // the more components, the closer fitted rows lie to their means, and the less that says of others.
    GaussianMixture widened(const View& x) const;

    // log p of every row of x(N,D), f32.
    std::vector<double> log_densities(const View& x) const;
    // A row (D), named by the stream and a line. `temperature` scales how far it strays from the mean of its component.
    std::vector<double> draw(const Stream& stream, std::uint32_t line, double temperature = 1) const;
    // The same for the numbers [from, to) alone, where the others are known to be those of x (D).
    std::vector<double> draw_rest(std::vector<double> x, int from, int to, const Stream& stream, std::uint32_t line,
                                  double temperature = 1) const;

    int components() const { return int(weights_.size()); }
    int dimensions() const { return dimensions_; }
    const std::vector<double>& weights() const { return weights_; }
    const std::vector<double>& means() const { return means_; }
    const std::vector<double>& factor() const { return factor_; }

    // For products in float: rows are taken from the middle of the means and multiplied by the inverse of L, so that S
    // becomes 1.
    struct Whitened {
        std::vector<double> middle;    // (D)
        std::vector<float> inverse;    // (D,D)
        std::vector<float> means;      // (M,D)
        std::vector<float> constants;  // (M) log w_k - |m_k|^2 / 2 of the whitened mean
        double constant = 0;           // -log det L - D/2 log 2 pi
    };
    const Whitened& whitened() const { return whitened_; }

  private:
    int dimensions_ = 0;
    std::vector<double> weights_, means_, factor_;
    Whitened whitened_;
};

}  // namespace masquerade

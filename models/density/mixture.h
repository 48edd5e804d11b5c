// SPDX-License-Identifier: MIT
// A mixture of M Gaussians over rows of D numbers. All components share one full covariance S,
//     p(x) = sum_k w_k N(x; m_k, S),    S = L L^T.
// The fit is a kernel density whose kernels are centred at the means of groups of neighbouring rows. The means follow
// the shape that the rows form; S describes how far, and in which directions, rows deviate from this shape. The results
// are bit-identical for any number of threads.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/random.h"
#include "engine/tensor/view.h"

namespace masquerade {

// A view of a vector of f32, for ops. If the vector is const, nothing may be written to the view.
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
    // weights (M): positive, with sum 1; means (M,D); factor (D,D): L, lower triangular with a positive diagonal.
    // Throws BadInput if one of these conditions is not met.
    GaussianMixture(std::vector<double> weights, std::vector<double> means, std::vector<double> factor);

    // Fits at most `components` components to x(N,D), f32, and at most one per row. Adds `floor` times the mean
    // variance, but at least 1e-6, to every variance. Throws BadInput if x has no rows or numbers that are not finite.
    static GaussianMixture fit(const View& x, int components, double floor, std::uint64_t seed);

    // Returns this mixture with S scaled by the factor from 1 to 100 that maximises the likelihood of the held-out rows
    // x(N,D), f32. With many components, the fitted rows are close to the means, and S underestimates how far other
    // rows deviate from the means.
    GaussianMixture widened(const View& x) const;

    // Returns log p of every row of x(N,D), f32.
    std::vector<double> log_densities(const View& x) const;
    // Draws a row (D), determined by (stream, line). `temperature` scales its deviation from the mean of its component.
    std::vector<double> draw(const Stream& stream, std::uint32_t line, double temperature = 1) const;
    // Draws only the numbers [from, to) of a row, given the other numbers of x (D).
    std::vector<double> draw_rest(std::vector<double> x, int from, int to, const Stream& stream, std::uint32_t line,
                                  double temperature = 1) const;

    int components() const { return int(weights_.size()); }
    int dimensions() const { return dimensions_; }
    const std::vector<double>& weights() const { return weights_; }
    const std::vector<double>& means() const { return means_; }
    const std::vector<double>& factor() const { return factor_; }

    // The mixture after whitening, for products in float: rows are centred at the mean of the mixture and multiplied by
    // the inverse of L, so that S becomes the identity.
    struct Whitened {
        std::vector<double> middle;    // (D) mean of the mixture
        std::vector<float> inverse;    // (D,D) inverse of L
        std::vector<float> means;      // (M,D) whitened means
        std::vector<float> constants;  // (M) log w_k - |m_k|^2 / 2, m_k the whitened mean
        double constant = 0;           // -log det L - D/2 log 2 pi
    };
    const Whitened& whitened() const { return whitened_; }

  private:
    int dimensions_ = 0;
    std::vector<double> weights_, means_, factor_;
    Whitened whitened_;
};

}  // namespace masquerade

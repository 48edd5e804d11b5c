// SPDX-License-Identifier: MIT
// A mixture of M Gaussians over rows x of D numbers, with weights w_k and means m_k. All components share one full
// covariance S, whose Cholesky factor is L:
//     p(x) = sum_k w_k N(x; m_k, S),    S = L L^T.
// The fit is a kernel density estimate whose kernels are centred at the means of groups of neighbouring rows. The means
// follow the shape that the rows form; S describes how far, and in which directions, rows deviate from this shape. The
// results are bit-identical for any number of threads.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/random.h"
#include "engine/tensor/view.h"
#include "input/lists.h"

namespace masquerade {

// Returns a view of a vector of f32, for ops. An op may write to the view only if the vector was not declared const.
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
    // weights(M) are positive and add up to 1. means(M,D) are finite. factor(D,D) is L, the Cholesky factor of the
    // covariance: a lower triangular matrix with a positive diagonal. Throws BadInput if one of these conditions is not
    // met.
    GaussianMixture(Numbers weights, Numbers means, Numbers factor);

    // Fits a mixture of min(components, N) Gaussians to the rows x(N,D), f32. The covariance of all components is
    //     S = (N S1 + 10 S2) / (N + 10)
    // S1 is the covariance of the rows around the means of their components. S2 is the covariance of the rows around
    // the mean of all rows, with max(floor * v, 1e-6) added to its diagonal; v is the mean variance of the D numbers.
    // Throws BadInput if x has no rows or has numbers that are not finite.
    static GaussianMixture fit(const View& x, int components, double floor, std::uint64_t seed);

    // Returns this mixture with its covariance S multiplied by a factor from 1 to 100. The factor maximises the
    // likelihood of the held-out rows x(N,D), f32. It is needed if there are many components: the rows used in the fit
    // are then close to the means, so S underestimates how far other rows deviate from the means.
    GaussianMixture widened(const View& x) const;

    // Returns log p of every row of x(N,D), f32, in nats.
    Numbers log_densities(const View& x) const;
    // Draws a row of D numbers. `temperature` scales the deviation of the row from the mean of its component. The
    // random numbers depend only on (stream, line).
    Numbers draw(const Stream& stream, std::uint32_t line, double temperature = 1) const;
    // Like draw(), but draws only the numbers [from, to) of the row x, given all other numbers of x.
    Numbers draw_rest(Numbers x, int from, int to, const Stream& stream, std::uint32_t line,
                      double temperature = 1) const;

    int components() const { return weights_.size(); }
    int dimensions() const { return dimensions_; }
    const Numbers& weights() const { return weights_; }
    const Numbers& means() const { return means_; }
    const Numbers& factor() const { return factor_; }

    // The mixture after whitening, for matrix products in float. Whitening subtracts the mean of the mixture from a
    // row, and then multiplies the row by the inverse of L, the Cholesky factor of the covariance. The covariance of
    // whitened rows is the identity.
    struct Whitened {
        Numbers middle;                // (D) mean of the mixture
        std::vector<float> inverse;    // (D,D) inverse of L, the Cholesky factor of the covariance
        std::vector<float> means;      // (M,D) the means m_k, whitened
        std::vector<float> constants;  // (M) log w_k - |m_k|^2 / 2, for the weight w_k and the whitened mean m_k
        // Log of the constant factor of a Gaussian density: -log det L - D/2 log 2 pi, with the Cholesky factor L.
        double constant = 0;
    };
    const Whitened& whitened() const { return whitened_; }

  private:
    int dimensions_ = 0;
    Numbers weights_, means_, factor_;
    Whitened whitened_;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Directions of Gaussian vectors. Where x = (r_1 u_1, ..., r_K u_K) is a draw of a mixture and only the unit vectors u_l
// of Z numbers are kept, as a prior on spheres does, their density is an integral over the lengths,
//     p(u) = sum_k w_k  int  N((r_1 u_1, ..., r_K u_K); m_k, S)  (r_1 ... r_K)^(Z-1)  dr.
// Its integrand is a Gaussian of r times a power, log-concave: one peak, which Laplace's method takes for a Gaussian.
// It makes log p too large by K / (12 (Z - 1)) where lengths are as free as a standard normal vector's, by less where S holds
// them near their mean.
#pragma once
#include <vector>

#include "models/density/mixture.h"

namespace masquerade {

// log p of every row of u (N, K Z), f32, K unit vectors each.
std::vector<double> log_density_of_directions(const GaussianMixture& mixture, int layers, const View& u);

}  // namespace masquerade

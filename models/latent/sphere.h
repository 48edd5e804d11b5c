// SPDX-License-Identifier: MIT
// Distributions on the unit sphere of R^d around a direction mu with a fixed concentration kappa. The constructor
// computes integrals and a table of quantiles by quadrature in double, in about 10 ms for any d and kappa.
#pragma once
#include <vector>

#include "input/lists.h"

namespace masquerade {

// Returns the log of the surface area of the unit sphere in R^d. The area is 2 pi^(d/2) / Gamma(d/2).
double log_sphere_surface(int dimensions);

// The density of a unit vector z is f(z) = C h(mu.z), where C is the normaliser, |mu| = 1, and the weight h(w) is
//   vmf              exp(kappa w)     von Mises-Fisher               Davidson et al. 2018; Xu & Durrett 2018
//   power_spherical  (1 + w)^kappa                                   De Cao & Aziz 2020
// The cosine w = mu.z lies in [-1, 1], and its density is proportional to h(w) (1 - w^2)^((d-3)/2). Given w,
// z = w mu + sqrt(1 - w^2) nu, where nu is uniform on the unit sphere of the directions orthogonal to mu.
enum class SphereKind { vmf, power_spherical };

class SphereDistribution {
  public:
    static constexpr double largest_kappa = 1e8;
    // Throws Error unless dimensions >= 2 and 0 <= kappa <= largest_kappa. `fineness` scales the number of points of
    // the quadrature and of the quantile table. With 1 instead of 8, construction is eight times as fast, but quantiles
    // are only within 1e-5 of the exact ones.
    SphereDistribution(int dimensions, double kappa, SphereKind kind = SphereKind::vmf, int fineness = 8);

    int dimensions() const { return dimensions_; }
    double kappa() const { return kappa_; }
    double mean() const { return 1 - distance_; }              // expected value of mu.z
    double log_normaliser() const { return log_normaliser_; }  // log of C in the density f(z) = C h(mu.z)
    // KL divergence of the density f from the uniform distribution, in nats. It is the same for every direction mu.
    double kl() const { return kl_; }
    // d kl / d log kappa. It equals the variance of log h(w), where w = mu.z, and the density is C h(w).
    double kl_by_log_kappa() const { return kl_by_log_kappa_; }

    // Returns the log density log f(z) of a unit vector z with mu.z = cosine. For a latent, this is log q(z | y).
    double log_density(double cosine) const { return log_normaliser_ + log_weight(cosine); }
    // Returns the log of the uniform density on the sphere. For a latent, this is the prior's log p(z).
    double log_uniform_density() const { return -log_surface_; }

    // Returns the u-quantile of w = mu.z for u in (0, 1). A uniformly drawn u gives a sample of w. The result is in
    // [-1, 1] and is monotone in u. With fineness 8, it is within 1e-9 of the exact quantile for u between 1e-16 and
    // 1 - 1e-16.
    double quantile(double u) const { return at_share(u).w; }
    // The u-quantile w, and its derivative by_log_kappa = dw / d log kappa at constant u. Let F be the distribution
    // function of w, and p its density. Since F(w) = u holds for every kappa, dw/dkappa = -(dF/dkappa) / p.
    struct Sample {
        double w, by_log_kappa;
    };
    Sample at_share(double u) const;  // u is the share of the distribution of w that lies below the quantile

  private:
    struct Knot {
        double t, slope;      // t: artanh of the u-quantile of w; slope: dt / d log(u / (1 - u))
        double by_log_kappa;  // dt / d log kappa, at a fixed probability u
    };
    double log_weight(double cosine) const;  // log of h(cosine), the density without its normaliser

    SphereKind kind_;
    int dimensions_;
    double kappa_;
    double distance_ = 0;  // expected value of 1 - mu.z
    double log_surface_ = 0, log_normaliser_ = 0, kl_ = 0, kl_by_log_kappa_ = 0;
    std::vector<Knot> knots_;  // the table of quantiles, at equal steps of log(u / (1 - u))
};

}  // namespace masquerade

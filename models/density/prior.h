// SPDX-License-Identifier: MIT
// A prior of the latents that is fitted after training, to what the encoder made of the training sentences: ex-post
// density estimation (Ghosh et al. 2020; Dai & Wipf 2019). A sentence's code is its latents by the mean path, K Z
// numbers. Codes are a mixture of Gaussians; a posterior sample is a code sent through a linear channel with noise,
// z = shift + B code + e, so z is a mixture, too, whose density replaces that of the uniform (or normal) prior.
// docs/prior.md derives all of it.
#pragma once
#include <string>
#include <vector>

#include "models/latent/latent.h"
#include "models/density/mixture.h"

namespace masquerade {

class LatentPrior {
  public:
    // How far a draw strays from the mean of its component, where nobody says otherwise:
    // docs/results/univae-default.md.
    static constexpr double default_temperature = 0.25;

    // codes (N, K Z) of N sentences by the mean path; samples (n, K Z), drawn from the posteriors of the first n of
    // them: of all, where there is time.
    // All f32.
    static LatentPrior fit(const LatentSpace& space, const View& codes, const View& samples,
                           std::uint64_t seed);

    // A code (K Z), made a point of the space, drawn by (seed, line, number).
    std::vector<double> draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                             double temperature = default_temperature) const;
    // log p(z) - log p_0(z) of every row of z (N, K Z), f32: p the density of posterior samples under this prior, p_0 the
    // prior of training. On spheres p is the density of directions: Laplace's approximation of the integral over lengths.
    std::vector<double> log_gains(const View& z) const;

    // `model`: a checksum of the weights whose latents these are; load demands the same. BadInput names the file.
    void save(const std::string& path, std::uint64_t model) const;
    static LatentPrior load(const std::string& path, const LatentSpace& space, std::uint64_t model);

    const GaussianMixture& codes() const { return codes_; }
    const GaussianMixture& samples() const { return samples_; }

  private:
    // shift (D), slope (D,D) = B, noise (D,D): the factor of the covariance of e
    LatentPrior(const LatentSpace& space, GaussianMixture codes, std::vector<double> shift,
                std::vector<double> slope, std::vector<double> noise);

    LatentSpace space_;
    GaussianMixture codes_, samples_;
    std::vector<double> shift_, slope_, noise_;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// A prior of the latents that is fitted after training, to what the encoder made of the training sentences: ex-post
// density estimation (Ghosh et al. 2020; Dai & Wipf 2019). A sentence's code is its latents by the mean path, K Z
// numbers; codes are a mixture of Gaussians. docs/prior.md derives it.
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

    // codes (N, K Z), f32, of N sentences by the mean path, and how many tokens they have; no lengths: none are drawn
    static LatentPrior fit(const LatentSpace& space, const View& codes, std::uint64_t seed,
                           const std::vector<int>& lengths = {});

    // A code (K Z), made a point of the space, drawn by (seed, line, number).
    std::vector<double> draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                             double temperature = default_temperature) const;
    // The same for the numbers [from, to) of a code alone, given its others.
    std::vector<double> draw_rest(const std::vector<double>& code, int from, int to, std::uint64_t seed,
                                  std::uint32_t line, std::uint32_t number,
                                  double temperature = default_temperature) const;

    // The length of one of the sentences; 0 where none are known.
    int draw_length(std::uint64_t seed, std::uint32_t line) const;

    // `model`: a checksum of the weights whose latents these are; load demands the same. BadInput names the file.
    void save(const std::string& path, std::uint64_t model) const;
    static LatentPrior load(const std::string& path, const LatentSpace& space, std::uint64_t model);

    const GaussianMixture& codes() const { return codes_; }

  private:
    LatentPrior(const LatentSpace& space, GaussianMixture codes) : space_(space), codes_(std::move(codes)) {}

    // BadInput if their sum is more than a draw chooses from
    void know_lengths(std::vector<std::uint32_t> with_length);
    std::vector<double> projected(std::vector<double> code) const;

    LatentSpace space_;
    GaussianMixture codes_;
    std::vector<std::uint32_t> with_length_;  // sentences of 0, 1, 2 ... tokens
    std::uint32_t with_any_length_ = 0;       // their sum
};

}  // namespace masquerade

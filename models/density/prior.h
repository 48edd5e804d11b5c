// SPDX-License-Identifier: MIT
// A prior of the latents that is fitted after training to the encodings of the training sentences: ex-post density
// estimation (Ghosh et al. 2020; Dai & Wipf 2019). The code of a sentence consists of its latents without noise
// (z = mu): K layers of Z numbers each. The prior is a mixture of Gaussians over codes. docs/prior.md derives it.
#pragma once
#include <string>
#include <vector>

#include "models/latent/latent.h"
#include "models/density/mixture.h"

namespace masquerade {

class LatentPrior {
  public:
    // Scale of a draw's deviation from the mean of its component. docs/results/univae-default.md explains the default.
    static constexpr double default_temperature = 0.25;

    // codes (N, K Z), f32: the codes of N sentences. lengths: the numbers of tokens of the sentences, for
    // draw_length(); may be empty.
    static LatentPrior fit(const LatentSpace& space, const View& codes, std::uint64_t seed,
                           const std::vector<int>& lengths = {});

    // Draws a code (K Z), projected to a point of the latent space. It is determined by seed, line and `number`, the
    // number of the sample for this line.
    std::vector<double> draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                             double temperature = default_temperature) const;
    // Draws only the numbers [from, to) of a code, given the other numbers of `code`.
    std::vector<double> draw_rest(const std::vector<double>& code, int from, int to, std::uint64_t seed,
                                  std::uint32_t line, std::uint32_t number,
                                  double temperature = default_temperature) const;

    // Returns the length of a randomly drawn training sentence, or 0 if no lengths are known.
    int draw_length(std::uint64_t seed, std::uint32_t line) const;

    // `model`: a checksum of the weights that the prior was fitted for. If the file is no prior, or has another
    // checksum, load() throws BadInput, whose message names the file.
    void save(const std::string& path, std::uint64_t model) const;
    static LatentPrior load(const std::string& path, const LatentSpace& space, std::uint64_t model);

    const GaussianMixture& codes() const { return codes_; }

  private:
    LatentPrior(const LatentSpace& space, GaussianMixture codes) : space_(space), codes_(std::move(codes)) {}

    // Throws BadInput if the number of all sentences does not fit into 32 bits.
    void know_lengths(std::vector<std::uint32_t> with_length);
    std::vector<double> projected(std::vector<double> code) const;

    LatentSpace space_;
    GaussianMixture codes_;
    std::vector<std::uint32_t> with_length_;  // number of sentences with 0, 1, 2 ... tokens
    std::uint32_t with_any_length_ = 0;       // sum of with_length_
};

}  // namespace masquerade

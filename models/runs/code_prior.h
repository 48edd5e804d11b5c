// SPDX-License-Identifier: MIT
// A prior of codes (vq, fsq) that is fitted after training: the codes of the training sentences, layer by layer, are
// the words of sentences that a small language model learns, and a sample is one that it writes.  van den Oord et al.
// 2017, section 3.3
#pragma once
#include "models/latent/latent.h"
#include "models/runs/unilm_run.h"

namespace masquerade {

class CodePrior {
  public:
    // latents (N, K Z) of N sentences by the mean path. The run is kept in `folder`, which is made anew.
    static void fit(const std::string& folder, const LatentSpace& space,
                    const std::vector<std::vector<double>>& latents, std::uint64_t seed, std::uint64_t model,
                    Device device);
    // `model`: a checksum of the weights whose latents these are. BadInput where the folder was fitted to others.
    CodePrior(const std::string& folder, const LatentSpace& space, std::uint64_t model, Device device);

    // A latent vector (K Z), drawn by (seed, line, number).
    std::vector<double> draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                             double temperature = 1) const;

  private:
    LatentSpace space_;
    std::unique_ptr<UniLmRun> run_;
};

}  // namespace masquerade

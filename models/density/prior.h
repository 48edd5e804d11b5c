// SPDX-License-Identifier: MIT
// Priors of the latents that are fitted after training to encoded training sentences: ex-post density estimation (Ghosh
// et al. 2020; Dai & Wipf 2019). The code of a sentence is its latent vector without noise (z = mu): the latents of all
// latent layers, one after another. docs/prior.md derives MixturePrior, a mixture of Gaussians over codes.
#pragma once
#include <optional>

#include "models/latent/latent.h"
#include "models/density/mixture.h"

namespace masquerade {

// A draw from a prior. The random numbers depend only on seed, line and `number`, the index of the sample for this
// line. `temperature` scales the noise from which the code is computed; if it is empty, each prior has its own default.
struct PriorDraw {
    std::uint64_t seed;
    std::uint32_t line, number;
    std::optional<double> temperature = {};
};

class LatentPrior {
  public:
    virtual ~LatentPrior() = default;

    virtual Numbers draw(const PriorDraw& how) const = 0;  // returns a code
    // Like draw(), but draws only the numbers [from, to) of a code, given all other numbers of `code`. A prior that
    // cannot do this returns false from draws_rest(), and its draw_rest() throws Error.
    virtual bool draws_rest() const { return false; }
    virtual Numbers draw_rest(const Numbers& code, int from, int to, const PriorDraw& how) const;
};

class MixturePrior : public LatentPrior {
  public:
    // Default of `temperature`. docs/results/univae-default.md explains the value.
    static constexpr double default_temperature = 0.25;

    // Fits a prior to the codes of N sentences, the rows of codes(N, space.numbers()), f32. `lengths` has the number of
    // tokens of each sentence, for draw_length(), or is empty.
    static MixturePrior fit(const LatentSpace& space, const View& codes, std::uint64_t seed,
                            const std::vector<int>& lengths = {});

    // Codes are projected to the nearest point of the latent space. `temperature` scales the deviation of a code from
    // the mean of its component.
    Numbers draw(const PriorDraw& how) const override;
    bool draws_rest() const override { return true; }
    Numbers draw_rest(const Numbers& code, int from, int to, const PriorDraw& how) const override;
    // Returns the number of tokens of a randomly drawn training sentence, or 0 if no lengths are known.
    int draw_length(std::uint64_t seed, std::uint32_t line) const;

    // save() writes the prior to a file, and load() reads it. `model` is a checksum of the weights of the model that
    // computed the codes. If the file is no prior, does not fit the latent space, or has another checksum, load()
    // throws BadInput with a message that names the file.
    void save(const std::string& path, std::uint64_t model) const;
    static MixturePrior load(const std::string& path, const LatentSpace& space, std::uint64_t model);

    const GaussianMixture& codes() const { return codes_; }

  private:
    MixturePrior(const LatentSpace& space, GaussianMixture codes) : space_(space), codes_(std::move(codes)) {}

    // Sets with_length_ and with_any_length_. Throws BadInput if the total number of sentences does not fit into 32
    // bits.
    void know_lengths(std::vector<std::uint32_t> with_length);
    Numbers projected(Numbers code) const;

    LatentSpace space_;
    GaussianMixture codes_;
    std::vector<std::uint32_t> with_length_;  // with_length_[n]: number of training sentences with n tokens
    std::uint32_t with_any_length_ = 0;       // sum of with_length_; 0: the lengths are unknown
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The classes of latents that have a file of their own, as rows of latent_kinds() make them.
#pragma once
#include "models/latent/latent.h"

namespace masquerade {

using MadeLatent = std::shared_ptr<const Latent>;
MadeLatent make_gaussian(Parameters*, const std::string& path, const LatentOptions& options, const Latent* before);
MadeLatent make_gaussian_chain(Parameters* parameters, const std::string& path, const LatentOptions& options, const Latent* before);
MadeLatent make_flow(Parameters* parameters, const std::string& path, const LatentOptions& options, const Latent* before);
MadeLatent make_levels(Parameters*, const std::string& path, const LatentOptions& options, const Latent* before);
MadeLatent make_codes(Parameters* parameters, const std::string& path, const LatentOptions& options, const Latent* before);

// (B,Z): normal numbers of one layer as a constant; zeros where `noise` is null: the mean path is a sample without noise.
inline Tensor* noise_of(Tape& tape, const Tensor* y, const LatentNoise* noise, int layer, int Z) {
    const std::vector<float> zero(noise ? 0 : std::size_t(y->rows() * Z), 0.f);
    return tape.constant("e", {y->rows(), Z}, y->dtype, noise ? noise->e[std::size_t(layer)].data() : zero.data());
}

}  // namespace masquerade

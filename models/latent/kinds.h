// SPDX-License-Identifier: MIT
// The functions for the table latent_kinds() that make latents whose classes are not in kinds.cpp, and two functions
// that several kinds of latents use.
#pragma once
#include "engine/tensor/numbers.h"
#include "models/latent/latent.h"

namespace masquerade {

using MadeLatent = std::shared_ptr<const Latent>;
MadeLatent make_gaussian(Parameters*, const std::string& path, const LatentOptions& options, const Latent* before);
MadeLatent make_gaussian_chain(Parameters* parameters, const std::string& path, const LatentOptions& options,
                               const Latent* before);
MadeLatent make_flow(Parameters* parameters, const std::string& path, const LatentOptions& options,
                     const Latent* before);
MadeLatent make_levels(Parameters*, const std::string& path, const LatentOptions& options, const Latent* before);
MadeLatent make_codes(Parameters* parameters, const std::string& path, const LatentOptions& options,
                      const Latent* before);

// Returns a constant tensor (B,Z), the normal numbers of one latent layer; zeros if `noise` is null (the mean path).
inline Tensor* noise_of(Tape& tape, const Tensor* y, const LatentNoise* noise, int layer, int Z) {
    const std::vector<float> zero(noise ? 0 : std::size_t(y->rows() * Z), 0.f);
    return tape.constant("e", {y->rows(), Z}, y->dtype, noise ? noise->e[std::size_t(layer)].data() : zero.data());
}

// Returns y(O) = w(O,I) x(I) + b for one document, computed on the CPU in double.
inline std::vector<double> affine(const Tensor* weight, const Tensor* bias, const std::vector<double>& x) {
    const OnHost w(weight->view()), b(bias->view());
    std::vector<double> y;
    for (std::int64_t o = 0; o < bias->shape.count(); o++) {
        y.push_back(b[o]);
        for (std::size_t i = 0; i < x.size(); i++) y.back() += w[o * std::int64_t(x.size()) + std::int64_t(i)] * x[i];
    }
    return y;
}

}  // namespace masquerade

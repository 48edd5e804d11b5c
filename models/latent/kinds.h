// SPDX-License-Identifier: MIT
// Functions that the kinds of latents share. make_latent<Kind>() makes a latent of class Kind. For each kind, the table
// latent_kinds() in kinds.cpp has a pointer to make_latent<Kind>. If the class of a kind is defined in another file,
// that file defines the pointer as one of the constants below, for example make_gaussian.
#pragma once
#include "engine/tensor/numbers.h"
#include "models/latent/latent.h"

namespace masquerade {

template <class Kind>
std::shared_ptr<const Latent> make_latent(Parameters* p, const std::string& path, const LatentOptions& o,
                                          const Latent* before) {
    return std::make_shared<Kind>(p, path, o, before);
}
extern const MakeLatent make_gaussian, make_gaussian_chain, make_flow, make_levels, make_codes;

// Returns the standard normal noise of one latent layer as a constant tensor (B,Z). If `noise` is null, the tensor is
// 0, so that z is the mean.
inline Tensor* noise_of(Tape& tape, const Tensor* y, const LatentNoise* noise, int layer, int Z) {
    const std::vector<float> zero(noise ? 0 : y->rows() * Z);
    return tape.constant("e", {y->rows(), Z}, y->dtype, noise ? noise->e[layer].data() : zero.data());
}

// Returns y(O) = w(O,I) x(I) + b for one document, computed on the CPU in double. b may be null.
inline Numbers affine(const Tensor* weight, const Tensor* bias, const Numbers& x) {
    const OnHost w(weight->view());
    Numbers y = bias ? numbers_of(bias->view()) : Numbers(weight->shape.count() / x.size());
    for (std::int64_t o = 0; o < std::int64_t(y.size()); o++)
        for (std::size_t i = 0; i < x.size(); i++) y[o] += w[o * std::int64_t(x.size()) + std::int64_t(i)] * x[i];
    return y;
}

}  // namespace masquerade

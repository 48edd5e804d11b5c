// SPDX-License-Identifier: MIT
// The options for drawing samples from a UniVAE (a text VAE), shared by ./generate and ./evaluate.
#pragma once
#include <fmt/format.h>

#include "models/density/prior.h"
#include "models/runs/measures.h"
#include "tools/program.h"

namespace masquerade {

inline void declare_samples(Options& group, SampleOptions& o) {
    group.choice("--prior", o.prior, {"fitted", "uniform"},
                 "prior of the latents: fitted after training (default, if there is one), or uniform, as in training");
    group.number("--latent-temperature", o.latent_temperature, 0.0, 100.0,
                 fmt::format("how far latents from the fitted prior may be from known ones (default: {})",
                             LatentPrior::default_temperature),
                 "T");
    group.number("--refine", o.refine, 0, 1000, "how often each sample is encoded and reconstructed (default: 0)");
}

}  // namespace masquerade

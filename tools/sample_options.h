// SPDX-License-Identifier: MIT
// The options of samples of UniVAE, of ./generate and ./evaluate.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>

#include "models/density/prior.h"
#include "tools/program.h"

namespace masquerade {

struct SampleOptions {
    std::string prior;  // as UniVaeRun::choose_prior takes them
    std::optional<double> latent_temperature;
    int refine = 0;

    void declare(Options& group) {
        group.choice("--prior", prior, {"fitted", "uniform"},
                     "of the latents: fitted after training (default, where there is one), or uniform, as in training");
        group.number("--latent-temperature", latent_temperature, 0.0, 100.0,
                     fmt::format("how far latents of the fitted prior stray from known ones (default: {})",
                                 LatentPrior::default_temperature),
                     "T");
        group.number("--refine", refine, 0, 1000, "read every sample and write it again so often (default: 0)");
    }
};

}  // namespace masquerade

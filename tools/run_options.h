// SPDX-License-Identifier: MIT
// Options that only some models support, such as UniVAE or insertion models; ./generate and ./evaluate share them.
#pragma once
#include <fmt/format.h>

#include "engine/base/processes.h"
#include "engine/io/checkpoint.h"
#include "models/density/prior.h"
#include "models/runs/measures.h"
#include "models/runs/run.h"
#include "models/writing/canvas.h"
#include "tools/program.h"

namespace masquerade {

// Throws BadUsage if the processes that share the lines do not all have the same weights.
inline void expect_equal_weights(const Run& run) {
    if (!alone()) expect_equal(fmt::format("weights {:016x}", checksum_of(run.parameters)));
}

// Declares the options for drawing samples from a UniVAE.
inline void declare_samples(Options& group, SampleOptions& o) {
    group.input("--prior", o.prior, "NAME",
                "prior of the latents: fitted after training (default, if there is one), uniform as in training, or a "
                "flow: the folder of a run of ./train flow points=RUN");
    group.number("--latent-temperature", o.latent_temperature, 0.0, 100.0,
                 fmt::format("how far latents from the fitted prior may be from known ones (default: {}); with a "
                             "flow, the factor of its noise (default: 1)",
                             MixturePrior::default_temperature),
                 "T");
    group.number("--refine", o.refine, 0, 1000, "how often each sample is encoded and reconstructed (default: 0)");
}

// Declares the options for models that insert words into a text. Returns their group of options.
inline Options declare_insertion(Options& app, CanvasOptions& o) {
    Options group = app.group("of insertion, and of univae with decoder=insertion");
    group.flag("--parallel", o.parallel, "insert into all open slots each round (default: only the best)");
    group.number("--threshold", o.threshold, 0.0, 2.0,
                 "--parallel: only into slots with p(c|l) of P or more, and into the best", "P");
    group.number("--end-penalty", o.end_penalty, -1000.0, 1000.0, "subtracted from log p of the end of a slot", "X");
    group.number("--sure-end", o.sure_end, 0.0, 1.0,
                 "a slot ends only if p(end) is P or more; 0.5: more likely than all words together", "P");
    group.flag("--apart", o.apart,
               "let the slots around equal words decide separately, as in the paper (default: as one)");
    group.number("--rounds", o.most_rounds, 1, 1000000, "maximum number of rounds");
    return group;
}

}  // namespace masquerade

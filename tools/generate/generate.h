// SPDX-License-Identifier: MIT
// The options of ./generate. Options that only some models support are in four groups.
#pragma once
#include "models/runs/writer.h"
#include "tools/program.h"

namespace masquerade {

struct GenerateOptions {
    Writing writing;
    Option maximum;
    std::vector<Option> draws;                             // the options that say how samples are drawn
    Options search, latents, targets, vectors, insertion;  // groups of options, each for some models only

    void declare(Options& app);
    // Throws BadUsage if the user gave an option that this kind of model does not support.
    void expect_only_of(const Family& kind) const;
};

}  // namespace masquerade

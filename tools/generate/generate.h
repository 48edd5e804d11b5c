// SPDX-License-Identifier: MIT
// The options of ./generate, by what a run can have: a search, latents, sources, canvases.
#pragma once
#include "models/runs/writer.h"
#include "tools/program.h"

namespace masquerade {

struct GenerateOptions {
    Writing writing;
    Option maximum;
    Options search, latents, targets, insertion;  // groups

    void declare(Options& app);
    // BadUsage where options are given that are not of this family.
    void expect_only_of(const Family& kind) const;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// "unilm", or several objectives with weights: "mlm:2,unilm:2,lm:1,lm-reverse:1". Every batch has one of them, drawn by its
// weight.
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

struct ObjectiveMixture {
    struct Part {
        const Objective* objective;
        double weight;
    };
    std::vector<Part> parts;  // weights sum to 1

    static ObjectiveMixture parse(const std::string& words, const std::vector<Objective>& table = objectives());  // BadUsage
    const Objective& at(std::uint64_t seed, std::uint32_t step) const;
    bool has(Objective::Trait trait) const;
};

}  // namespace masquerade

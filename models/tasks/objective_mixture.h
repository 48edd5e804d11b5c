// SPDX-License-Identifier: MIT
// "unilm", or several objectives with weights: "mlm:2,unilm:2,lm:1,lm-reverse:1". Every batch has one of them, drawn by its
// weight.
#pragma once
#include "models/tasks/seq2seq_objective.h"

namespace masquerade {

// O: Objective, of one stack, or PairObjective, of two.
template <class O>
struct MixtureOf {
    struct Part {
        const O* objective;
        double weight;
    };
    std::vector<Part> parts;  // weights sum to 1

    static MixtureOf parse(const std::string& words);  // BadUsage
    const O& at(std::uint64_t seed, std::uint32_t step) const;
    bool has(Objective::Trait trait) const;
};
using ObjectiveMixture = MixtureOf<Objective>;
using PairMixture = MixtureOf<PairObjective>;

}  // namespace masquerade

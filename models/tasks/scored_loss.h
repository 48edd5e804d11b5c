// SPDX-License-Identifier: MIT
// The losses of a model on text it has not seen.
#pragma once
#include <cstdint>
#include <vector>

#include "models/nets/target_net.h"
#include "models/tasks/objective.h"

namespace masquerade {

struct ScoredLoss {
    double per_token = 0;     // nats
    double per_document = 0;  // nats
    std::int64_t documents = 0, tokens = 0;
};

// The loss of an objective, over whole sentences or pairs. Objectives that draw (mlm, plm, mass) draw as in step 0.
ScoredLoss scored_loss(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options,
                       const std::vector<const Sentence*>& sentences);

}  // namespace masquerade

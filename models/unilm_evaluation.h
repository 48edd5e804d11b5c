// SPDX-License-Identifier: MIT
// What a UniLM knows of text it has not seen.
#pragma once
#include "models/unilm.h"

namespace masquerade {

struct ScoredLoss {
    double per_token = 0;     // nats
    double per_document = 0;  // nats
    std::int64_t documents = 0, tokens = 0;
};
// Of an objective, over whole sentences or pairs. Objectives that draw (mlm, plm) draw as in step 0.
ScoredLoss scored_loss(const UniLm& model, const Objective& objective, const ObjectiveOptions& options,
                       const std::vector<const Sentence*>& sentences);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Parts that the objectives of one stack and of two share.
#pragma once
#include "engine/base/random.h"
#include "models/tasks/objective.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& options);

// The token that is read where `id` is hidden: [MASK], or by the shares `kept` and `random` the token itself or any other.
int hidden_as(int id, Sequence& random, const ObjectiveOptions& options);

const std::vector<Objective>& encoder_decoder_objectives();

}  // namespace masquerade

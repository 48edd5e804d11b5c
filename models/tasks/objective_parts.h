// SPDX-License-Identifier: MIT
// What the making of objectives shares, of one stack and of two.
#pragma once
#include "engine/base/random.h"
#include "models/tasks/objective.h"
#include "models/batch/packing.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& options);

// What is read where `id` is hidden: [MASK], or by the shares `kept` and `random` the token itself or any other.
int hidden_as(int id, Sequence& random, const ObjectiveOptions& options);

// Refuses what objective `name` with these traits cannot use.
void expect_fitting(const char* name, unsigned traits, const Sentence& sentence,
                    const ObjectiveOptions& options);

}  // namespace masquerade

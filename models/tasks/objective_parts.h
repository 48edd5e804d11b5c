// SPDX-License-Identifier: MIT
// Parts that the objectives of one stack and of two share.
#pragma once
#include "engine/base/random.h"
#include "models/tasks/objective.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& options);

// The token that is read where `id` is hidden: [MASK], or by the shares `kept` and `random` the token itself or any
// other.
int hidden_as(int id, Sequence& random, const ObjectiveOptions& options);

// The masks of a batch by a function of its parts: of one stack, or of a decoder.
template <SegmentGraph (*mask)(const Documents&)>
void one_stack(Batch& b) {
    b.graph = mask(b.parts);
}
template <SegmentGraph (*mask)(const Documents&)>
void two_stacks(Batch& b) {
    b.source_graph = full_mask(sources_of(b.shared));
    b.graph = mask(targets_of(b.parts));
    b.cross_graph = cross_mask(b.shared);
}

const std::vector<Objective>& encoder_decoder_objectives();

}  // namespace masquerade

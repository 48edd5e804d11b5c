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

// The encoder reads the source; the decoder reads [CLS] and `wanted` but for its last token, from position `start` on,
// and every row is asked for what comes next.
Example source_and_target(const Sentence& sentence, const std::vector<int>& wanted, int start,
                          const ObjectiveOptions& options);

// The masks of a batch by a function of its parts: of one stack, or of a decoder.
template <SegmentGraph (*mask)(const Documents&)>
void one_stack(Batch& b, const ObjectiveOptions& o) {
    b.graph = mask(b.parts);
    if (o.masks) b.masks = o.masks->graphs(b.parts);
}
template <SegmentGraph (*mask)(const Documents&)>
void two_stacks(Batch& b, const ObjectiveOptions& o) {
    b.source_graph = full_mask(sources_of(b.shared));
    b.graph = mask(targets_of(b.parts));
    b.cross_graph = cross_mask(b.shared);
    if (!o.encoder_masks) return;
    b.source_masks = o.encoder_masks->graphs(sources_of(b.shared));
    b.masks = o.masks->graphs(targets_of(b.parts));
    b.cross_masks = o.masks->cross(b.shared);
}

const std::vector<Objective>& encoder_decoder_objectives();

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Functions that several objectives use.
#pragma once
#include "engine/base/random.h"
#include "models/tasks/objective.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& options);

// Returns the token that replaces the hidden token `id`: if u < kept, the token `id` itself; if u - kept < random, a
// random token that is not special; otherwise [MASK]. `u` must be drawn uniformly from [0, 1).
int hidden_as(int id, double u, Sequence& random, const ObjectiveOptions& options);

// Returns the rows of a sentence tree, with their ranks, from a sentence or pair such as "[ marie curie ] ( born warsaw
// ) ( found radium ) worked in paris". A fact in ( ) is a branch of the words in [ ] before it: its positions continue
// these words, as those of the next words of the sentence do. Brackets of another form are ordinary tokens. Rank: -1
// for a word without facts; e for words with facts, where e counts such words of the sentence; -2 - f for a word of a
// fact, where f counts the facts of the sentence.
Example tree_of(const Sentence& sentence, const ObjectiveOptions& options);

// Makes an example for teacher forcing. The encoder reads the sentence. The decoder reads [CLS] and `wanted` without
// its last token, at the positions from `start` on. Each decoder row predicts the next token of `wanted`.
Example source_and_target(const Sentence& sentence, const std::vector<int>& wanted, int start,
                          const ObjectiveOptions& options);

// one_stack and two_stacks set the masks of a batch for one stack, or for an encoder and a decoder. `mask` makes the
// self-attention mask of the only stack, or of the decoder, from the lengths of the documents.
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

// SPDX-License-Identifier: MIT
// Functions that several objectives use.
#pragma once
#include <algorithm>

#include "engine/base/random.h"
#include "models/tasks/objective.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& options);

// Returns the token that replaces the hidden token `id`: if u < options.kept, the token `id` itself; otherwise, if
// u < options.kept + options.random, a random token that is not special; otherwise [MASK]. `u` must be drawn uniformly
// from [0, 1).
int hidden_as(int id, double u, Sequence& random, const ObjectiveOptions& options);

// Returns an example with the rows of a sentence tree and their ranks. In the sentence or pair, words with facts stand
// in [ ], and each fact follows in ( ): "[ marie curie ] ( born warsaw ) ( found radium ) worked in paris". These
// brackets get no rows; all other brackets are ordinary tokens. Each fact, and also the rest of the sentence, starts at
// the position after "curie": "born", "found" and "worked" have the same position. The rank of a word without facts is
// -1. The words in the e-th pair of brackets [ ] have the rank e. The words of the f-th fact of the sentence have the
// rank -2 - f. e and f are counted from 0.
Example tree_of(const Sentence& sentence, const ObjectiveOptions& options);

// Makes an example for teacher forcing. The encoder reads the sentence. The decoder reads [CLS] and `wanted` without
// its last token, at the positions from `start` on. Each decoder row predicts the next token of `wanted`.
Example source_and_target(const Sentence& sentence, const Tokens& wanted, int start, const ObjectiveOptions& options);

// Makes the example of the objective unilm: the last row of the source and the rows of the target predict the target.
Example unilm(const Sentence& sentence, const ObjectiveOptions& options);

// Makes the example of a pair whose target is turned around: the last token comes first, and [SEP] stays at the end.
template <Example (*make)(const Sentence&, const ObjectiveOptions&)>
Example last_first(const Sentence& s, const ObjectiveOptions& o) {
    Sentence turned = s;
    std::reverse(turned.target.begin(), turned.target.end() - 1);
    return make(turned, o);
}

// Returns the random numbers of one canvas of a sentence (ObjectiveOptions::canvas). `what` is the name of their use.
inline Sequence random_of_canvas(const char* what, const Sentence& s, const ObjectiveOptions& o) {
    return {o.seed, text(what, ".", o.canvas), std::uint32_t(s.name), o.step};
}
// Returns the name of the rows of this canvas, so that each canvas of a sentence has a dropout mask of its own.
inline int name_of_canvas(int sentence, const ObjectiveOptions& o) { return sentence ^ o.canvas << 26; }

// The mask of documents whose source does not see the target: each row of the source sees the source, and each row of
// the target sees everything.
SegmentGraph source_alone_mask(const Documents& documents);

// one_stack and two_stacks set the masks of a batch for one stack, or for an encoder and a decoder. `mask` makes the
// self-attention mask of the only stack, or of the decoder, from the lengths of the documents.
template <SegmentGraph (*mask)(const Documents&)>
void one_stack(Batch& b, const ObjectiveOptions& o) {
    b.graph = mask(b.parts);
    if (o.masks) b.masks = o.masks->graphs(b.parts, b.inert());
}
template <SegmentGraph (*mask)(const Documents&)>
void two_stacks(Batch& b, const ObjectiveOptions& o) {
    b.source_graph = full_mask(sources_of(b.shared));
    b.graph = mask(targets_of(b.parts));
    b.cross_graph = cross_mask(b.shared);
    if (!o.encoder_masks) return;
    b.source_masks = o.encoder_masks->graphs(sources_of(b.shared), b.inert());
    b.masks = o.masks->graphs(targets_of(b.parts), b.inert());
    b.cross_masks = o.masks->cross(b.shared);
}

const std::vector<Objective>& encoder_decoder_objectives();

}  // namespace masquerade

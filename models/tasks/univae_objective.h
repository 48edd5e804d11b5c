// SPDX-License-Identifier: MIT
// Batches for an existing UniVAE, made by its objective.
#pragma once
#include "models/nets/univae.h"
#include "models/tasks/objective.h"

namespace masquerade {

// Returns the objective of the model, a row of latent_objectives(), which depends on its decoder and on whether it is
// conditional.
const Objective& objective_of(const UniVae& model);

// Returns objective options with the fields that follow from the model: the maximum length, the position of a target's
// first token, the last layer of the encoder half, the masks in words, and the number of places of masked diffusion.
ObjectiveOptions halves_options(const UniVae& model);

// Makes the batch of a training step. If the prior of the latents depends on the source, Batch::sources is a second
// batch, in which the encoder half reads only the sources.
Batch halves_batch(const UniVae& model, const Sentences& sentences, std::uint32_t step, const ObjectiveOptions& options,
                   int pad_to);

// Makes a batch of which only the encoder half is needed. It is the same for every decoder.
Batch encoder_batch(const UniVae& model, const Sentences& sentences);

// Makes a batch of only the sources of pairs, for a prior that depends on the source: the encoder half reads the
// source.
Batch sources_batch(const UniVae& model, const Sentences& sentences, int pad_to = 1);

// Makes a batch with an encoder half and a decoder half (struct Halves) for each sentence or pair. If `joint` is true,
// also packs both halves as one sequence, for UniVae::joint().
Batch halves_batch(const UniVae& model, const Sentences& sentences, int pad_to = 1, bool joint = false);

// Only for a model that inserts words or un-hides tokens: makes a batch in which the decoder half of document i reads
// the words of canvas i. In masked diffusion, `words` has [MASK] at hidden places, and the places `asked` get a label.
// `sentence` is packed as the encoder half; in a conditional model, the decoder half also reads it, as the source.
// `start` is the position of the canvas; a conditional model ignores it.
struct CanvasHalf {
    Tokens words;
    std::vector<int> asked = {};
    const Sentence* sentence = nullptr;
    int start = 0;
};
Batch canvas_batch(const UniVae& model, const std::vector<CanvasHalf>& canvases);

}  // namespace masquerade

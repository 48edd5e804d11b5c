// SPDX-License-Identifier: MIT
// UniVAE's objective, and batches for an existing model.
#pragma once
#include "models/nets/univae.h"
#include "models/tasks/objective.h"

namespace masquerade {

// Returns the options that follow from the model: lengths, layers of the latents, masks in words.
ObjectiveOptions halves_options(const UniVae& model);

// Makes a batch with an encoder half and a decoder half (struct Halves) for each sentence or pair. joint: also packs
// both halves as one sequence, for UniVae::joint.
Batch halves_batch(const UniVae& model, const std::vector<const Sentence*>& sentences, int pad_to = 1,
                   bool joint = false);

}  // namespace masquerade

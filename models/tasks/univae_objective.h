// SPDX-License-Identifier: MIT
// UniVAE's objective, and batches for an existing model.
#pragma once
#include "models/nets/univae.h"
#include "models/tasks/objective.h"

namespace masquerade {

// The options that the model determines: the lengths, the layers of the latents, the masks in words.
ObjectiveOptions halves_options(const UniVae& model);

// A batch of whole sentences or pairs. joint: the batch also has the rows of the joint form.
Batch halves_batch(const UniVae& model, const std::vector<const Sentence*>& sentences, int pad_to = 1,
                   bool joint = false);

}  // namespace masquerade

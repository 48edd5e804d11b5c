// SPDX-License-Identifier: MIT
// UniVAE's objective, and its batches for a net that is there.
#pragma once
#include "models/nets/univae.h"
#include "models/tasks/objective.h"

namespace masquerade {

// The options that follow from a net: the lengths, the layers of the latents, the masks in words.
ObjectiveOptions halves_options(const UniVae& model);

// A batch of whole sentences or pairs. `joint`: for the joint form as well.
Batch halves_batch(const UniVae& model, const std::vector<const Sentence*>& sentences, int pad_to = 1,
                   bool joint = false);

}  // namespace masquerade

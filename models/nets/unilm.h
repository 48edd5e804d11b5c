// SPDX-License-Identifier: MIT
// UniLM (Dong et al. 2019) and all that one stack can be by its mask alone: BERT, a language model of any order, sequence
// to sequence. A batch says which rows see which and what is asked of them (models/tasks/objective.h); the model is the stack.
//
// A pair is one sequence, [CLS] source [SEP] target [SEP]. The source is read in both directions, the target from left to
// right, and the source never sees the target: its keys and values can be kept while a target is written.
#pragma once
#include "models/nets/target_net.h"

namespace masquerade {

class UniLm : public TargetNet {
  public:
    UniLm(Parameters& parameters, const BackboneOptions& options) : backbone(parameters, options) {}

    // The last layer runs for the asked rows alone.
    Tensor* hidden(Tape& tape, const Batch& batch) const override;
    const Backbone& head_stack() const override { return backbone; }

    Backbone backbone;
};

}  // namespace masquerade

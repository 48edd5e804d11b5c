// SPDX-License-Identifier: MIT
// UniLM (Dong et al. 2019) and all that one stack can be by its mask alone: BERT, a language model of any order, sequence
// to sequence. A batch says which rows see which and what is asked of them (models/tasks/objective.h); the model is the stack.
//
// A pair is one sequence, [CLS] source [SEP] target [SEP]. The source is read in both directions, the target from left to
// right, and the source never sees the target: its keys and values can be kept while a target is written.
#pragma once
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

class UniLm {
  public:
    UniLm(Parameters& parameters, const BackboneOptions& options) : backbone(parameters, options) {}

    // What the tied embedding meets for every scored row: (M,C). The last layer runs for these rows alone.
    Tensor* hidden(Tape& tape, const ObjectiveBatch& batch) const;

    // Both with label smoothing; what held-out text costs without it, scored_loss() says.
    Backbone::MeanLoss loss(Tape& tape, const ObjectiveBatch& batch, double smoothing = 0) const;

    const Backbone& head_stack() const { return backbone; }  // the one that predicts

    Backbone backbone;
};

}  // namespace masquerade

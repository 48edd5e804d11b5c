// SPDX-License-Identifier: MIT
// A model that predicts the targets of a batch: one stack, or an encoder and a decoder.
#pragma once
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

class TargetNet {
  public:
    virtual ~TargetNet() = default;
    // Returns the output of the head for every label, (M,E). It is then multiplied by the tied embedding.
    virtual Tensor* hidden(Tape& tape, const Batch& batch) const = 0;
    virtual const Backbone& head_stack() const = 0;  // the stack whose head predicts

    // Returns the mean loss over the labels, with label smoothing.
    virtual Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double smoothing = 0) const {
        return head_stack().mean_loss(tape, hidden(tape, batch), batch.labels.tokens, batch.labels.weights,
                                      batch.labels.count, smoothing);
    }
    // The loss of each label (insertion: of each canvas), without smoothing, for evaluation.
    struct Losses {
        Tensor* each;
        int count;  // number of real losses, which come first
    };
    virtual Losses losses(Tape& tape, const Batch& batch) const {
        return {head_stack().token_losses(tape, hidden(tape, batch), batch.labels.tokens), batch.labels.count};
    }
};

}  // namespace masquerade

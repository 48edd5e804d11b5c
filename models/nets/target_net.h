// SPDX-License-Identifier: MIT
// A model that predicts the targets of a batch: one stack, or an encoder and a decoder.
#pragma once
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

class TargetNet {
  public:
    virtual ~TargetNet() = default;
    // The output of the head, which is multiplied by the tied embedding; one row per question: (M,E).
    virtual Tensor* hidden(Tape& tape, const Batch& batch) const = 0;
    virtual const Backbone& head_stack() const = 0;  // the stack whose head predicts

    // The mean loss over the questions, with label smoothing.
    virtual Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double smoothing = 0) const {
        return head_stack().mean_loss(tape, hidden(tape, batch), batch.labels.tokens, batch.labels.weights,
                                      batch.labels.count, smoothing);
    }
    // The losses of the single questions, without smoothing, for evaluation.
    struct Losses {
        Tensor* each;
        int count;  // number of real losses, which come first
    };
    virtual Losses losses(Tape& tape, const Batch& batch) const {
        return {head_stack().token_losses(tape, hidden(tape, batch), batch.labels.tokens), batch.labels.count};
    }
};

}  // namespace masquerade

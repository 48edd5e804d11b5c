// SPDX-License-Identifier: MIT
// A model that answers the questions of a batch: one stack, or an encoder and a decoder.
#pragma once
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

class TargetNet {
  public:
    virtual ~TargetNet() = default;
    // The rows that the tied embedding meets, one for each question: (M,C).
    virtual Tensor* hidden(Tape& tape, const Batch& batch) const = 0;
    virtual const Backbone& head_stack() const = 0;  // the one that predicts

    // The mean over the questions, with label smoothing.
    virtual Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double smoothing = 0) const {
        return head_stack().mean_loss(tape, hidden(tape, batch), batch.asked.tokens, batch.asked.weights,
                                      batch.asked.count, smoothing);
    }
    // The same without smoothing, one by one, for reading.
    struct Losses {
        Tensor* each;
        int count;  // real ones, which are the first
    };
    virtual Losses losses(Tape& tape, const Batch& batch) const {
        return {head_stack().token_losses(tape, hidden(tape, batch), batch.asked.tokens), batch.asked.count};
    }
};

}  // namespace masquerade

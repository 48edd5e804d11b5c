// SPDX-License-Identifier: MIT
// The base class of models that predict the labels of a batch. Such a model is one stack, or an encoder and a decoder.
#pragma once
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

class EncoderDecoder;

class TargetNet {
  public:
    virtual ~TargetNet() = default;
    // Returns the output of the head, (M,E): E numbers for each of the M labels. The product of this output with the
    // tied embedding gives the logits, except in an insertion model, which has its own formulas (insertion.h).
    virtual Tensor* hidden(Tape& tape, const Batch& batch) const = 0;
    virtual const Backbone& head_stack() const = 0;                       // the stack whose head predicts the labels
    virtual const EncoderDecoder* two_stacks() const { return nullptr; }  // null if the model has one stack

    // Returns the mean loss over the labels, with label smoothing: the sum of the weighted losses of the labels,
    // divided by Batch::whole().predictions. An insertion model returns the mean over the canvases (documents), and
    // ignores `smoothing`.
    virtual Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double smoothing = 0) const {
        return head_stack().mean_loss(tape, hidden(tape, batch), batch.labels.tokens, batch.labels.weights,
                                      batch.whole().predictions, smoothing);
    }
    // The losses of a batch without label smoothing, for evaluation: one per label or, in an insertion model, one per
    // canvas (the words inserted so far).
    struct Losses {
        Tensor* each;
        int count;  // number of losses of real labels or canvases; the losses of padding follow
    };
    virtual Losses losses(Tape& tape, const Batch& batch) const {
        return {head_stack().token_losses(tape, hidden(tape, batch), batch.labels.tokens), batch.labels.count};
    }
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The Insertion Transformer (Stern et al. 2019), which generates the target of a pair by inserting words in any order.
// The canvas (the words inserted so far) is read by a decoder that sees its whole canvas and the encoder, or by one
// stack that reads both source and canvas. A head predicts the words to insert (models/nets/insertion_head.h).
#pragma once
#include <memory>

#include "models/nets/encoder_decoder.h"
#include "models/nets/insertion_head.h"
#include "models/nets/unilm.h"

namespace masquerade {

struct InsertionOptions : InsertionHeadOptions {
    EncoderDecoderOptions stacks;  // if one_stack, only stacks.stack is used
    bool one_stack = false;
};

class InsertionTransformer : public TargetNet {
  public:
    InsertionTransformer(Parameters& p, const InsertionOptions& o) : options(o) {
        EncoderDecoderOptions stacks = o.stacks;
        stacks.stack.head_rows = o.head_rows();
        if (o.one_stack)
            one_ = std::make_unique<Backbone>(p, stacks.stack);
        else
            two_ = std::make_unique<EncoderDecoder>(p, stacks);
        head = std::make_unique<InsertionHead>(p, head_stack(), o);
    }

    // Returns the last hidden state of the stack that reads the canvases, (N,C): N rows of width C.
    Tensor* rows(Tape& tape, const Batch& batch) const {
        return two_ ? two_->rows(tape, batch) : one_->finish(tape, run_rows(tape, *one_, batch));
    }
    Tensor* hidden(Tape& tape, const Batch& batch) const override {
        return head->slots(tape, rows(tape, batch), batch).h;
    }
    const Backbone& head_stack() const override { return one_ ? *one_ : two_->decoder; }
    // Returns the mean loss per canvas, that is, per document.
    Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double /*smoothing*/ = 0) const override {
        Numbers weights(batch.parts.size(), 0);
        std::fill_n(weights.begin(), batch.documents, 1.0 / batch.whole().documents);
        return head->loss(tape, rows(tape, batch), batch, weights);
    }
    Losses losses(Tape& tape, const Batch& batch) const override { return {loss(tape, batch).losses, batch.documents}; }

    const EncoderDecoder* two_stacks() const override { return two_.get(); }

    const InsertionOptions options;
    std::unique_ptr<InsertionHead> head;

  private:
    std::unique_ptr<EncoderDecoder> two_;
    std::unique_ptr<Backbone> one_;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Computes the logits of hidden places with a model that was trained with objective=diffusion or block-diffusion. Every
// pass runs the source and the whole canvas, with the rows and the masks of training; in blocks, it runs the canvas up to
// the block that is written, and all asked places of a canvas must lie in this block.
#pragma once
#include "models/nets/target_net.h"
#include "models/tasks/objective.h"
#include "models/writing/unmask.h"

namespace masquerade {

class UnmaskDecoder : public PlaceModel {
  public:
    // `options` are the options of `objective` that were used in training. `text`: whether the places belong to a text,
    // which is the target of [CLS] and has the segment id of a source; otherwise, to the target of a pair.
    UnmaskDecoder(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options, bool text);
    // Sets the sources: MaskedCanvas::source is an index into `sources`. If `text`, only their [CLS] is read.
    void read(const Sentences& sources) { sources_ = sources; }
    int vocabulary() const override { return net_.head_stack().options.vocabulary; }
    const float* logits(const std::vector<const MaskedCanvas*>& canvases) override;

  private:
    Example example(const MaskedCanvas& canvas) const;

    const TargetNet& net_;
    const Objective& objective_;
    const ObjectiveOptions options_;
    const bool text_;
    Arena arena_;
    Tape tape_;
    Sentences sources_;
    std::vector<float> logits_;
};

}  // namespace masquerade

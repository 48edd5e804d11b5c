// SPDX-License-Identifier: MIT
// Computes the scores of slots with an Insertion Transformer. Sources are encoded once. Every round computes each
// canvas from scratch, because insertion changes the positions of its words.
#pragma once
#include "models/nets/insertion.h"
#include "models/tasks/insertion_objective.h"
#include "models/writing/canvas.h"
#include "models/writing/seq2seq_decoder.h"

namespace masquerade {

class InsertionDecoder : public SlotModel {
  public:
    // `options`: the options of `objective`, as in training. `forbidden`: words that are never inserted, including the
    // end token, whose probability is in SlotScore::end.
    InsertionDecoder(const InsertionTransformer& model, const Objective& objective, InsertionForm form,
                     const ObjectiveOptions& options, const std::vector<int>& forbidden);
    // Encodes the sources; Canvas::source is an index into `sources`. In score(), canvases must be sorted by source.
    void read(const std::vector<const Sentence*>& sources);
    std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) override;

  private:
    Batch batch_of(const std::vector<const Canvas*>& canvases) const;
    Tensor* rows(const Batch& batch);

    const InsertionTransformer& model_;
    const Objective& objective_;
    const InsertionForm form_;
    const ObjectiveOptions options_;
    std::vector<char> forbidden_;  // (V)
    Arena arena_;
    Tape tape_;
    std::vector<const Sentence*> sources_;
    std::unique_ptr<EncoderReader> reader_;
    Memory memory_;
};

}  // namespace masquerade

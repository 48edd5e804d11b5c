// SPDX-License-Identifier: MIT
// Computes the scores of slots (the places where a token can be inserted) with an Insertion Transformer. If the model
// has an encoder, each source is encoded once. The rows of each canvas are computed anew in every round, because an
// insertion changes the positions of the words.
#pragma once
#include "models/nets/insertion.h"
#include "models/tasks/insertion_objective.h"
#include "models/writing/canvas.h"
#include "models/writing/canvas_decoder.h"

namespace masquerade {

// Returns how canvases of at most `longest` words are written. Throws BadUsage if the options ask for beams or samples,
// or contradict each other.
CanvasOptions canvas_options(const SearchOptions& options, Finalization finalization, int longest);

// Returns the scores of the slots of every document of the batch. `rows` are the last hidden rows, (N,C). The tokens in
// `forbidden` and the end token `end` are never inserted.
SlotScores slot_scores(Tape& tape, const InsertionHead& head, Tensor* rows, const Batch& batch, const Tokens& forbidden,
                       int end);

class InsertionDecoder : public SlotModel, private CanvasDecoder {
  public:
    // `options` are the options of `objective` that were used in training. The tokens in `forbidden` are never
    // inserted.
    InsertionDecoder(const InsertionTransformer& model, const Objective& objective, InsertionForm form,
                     const ObjectiveOptions& options, const Tokens& forbidden);
    // Sets the sources and, if the model has an encoder, encodes them. Canvas::source is an index into `sources`. The
    // canvases that are passed to score() must be sorted by source.
    void read(const Sentences& sources);
    SlotScores score(const Canvases& canvases) override;

  private:
    Example example(const Canvas& canvas) const;

    const InsertionTransformer& model_;
    const InsertionForm form_;
    const Tokens forbidden_;
};

}  // namespace masquerade

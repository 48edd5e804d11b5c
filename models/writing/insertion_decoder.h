// SPDX-License-Identifier: MIT
// Computes the scores of slots (the places where a token can be inserted) with an Insertion Transformer. If the model
// has an encoder, each source is encoded once. The rows of each canvas are computed anew in every round, because an
// insertion changes the positions of the words.
#pragma once
#include "models/nets/insertion.h"
#include "models/tasks/insertion_objective.h"
#include "models/writing/canvas.h"
#include "models/writing/seq2seq_decoder.h"

namespace masquerade {

// Returns how canvases of at most `longest` words are written. Throws BadUsage if the options ask for beams or samples,
// or contradict each other.
CanvasOptions canvas_options(const SearchOptions& options, Finalization finalization, int longest);

// Returns the scores of the slots of every document of the batch. `rows` are the last hidden rows, (N,C). `forbidden`
// says for each token of the vocabulary whether it is never inserted; `end` is the end token.
std::vector<std::vector<SlotScore>> slot_scores(Tape& tape, const InsertionHead& head, Tensor* rows, const Batch& batch,
                                                const std::vector<char>& forbidden, int end);

class InsertionDecoder : public SlotModel {
  public:
    // `options` are the options of `objective` that were used in training. The tokens in `forbidden` are never
    // inserted. They must include the end token, whose probability is in SlotScore::end.
    InsertionDecoder(const InsertionTransformer& model, const Objective& objective, InsertionForm form,
                     const ObjectiveOptions& options, const Tokens& forbidden);
    // Sets the sources and, if the model has an encoder, encodes them. Canvas::source is an index into `sources`. The
    // canvases that are passed to score() must be sorted by source.
    void read(const Sentences& sources);
    std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) override;

  private:
    Batch batch_of(const std::vector<const Canvas*>& canvases) const;
    Tensor* rows(const Batch& batch);

    const InsertionTransformer& model_;
    const Objective& objective_;
    const InsertionForm form_;
    const ObjectiveOptions options_;
    std::vector<char> forbidden_;  // for each token of the vocabulary, whether it is never inserted
    Arena arena_;
    Tape tape_;
    Sentences sources_;
    std::unique_ptr<EncoderReader> reader_;
    Memory memory_;
};

}  // namespace masquerade

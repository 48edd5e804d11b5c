// SPDX-License-Identifier: MIT
// Rows and labels of insertion models, for training and for generation. A canvas is the part of a target that is
// already there; its slots are the places where words can be inserted. The row before a slot predicts the slot's
// words.
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

enum class InsertionForm {
    two_stacks,   // the encoder reads [CLS] source [SEP], and the decoder reads [CLS] canvas [SEP]
    one_stack,    // one stack reads [CLS] source [SEP] [CLS] canvas [SEP]; words are inserted into the canvas
    either_side,  // one stack reads [CLS] source [SEP] canvas [SEP]; words are inserted into source and canvas
};

// Makes an example with the rows of a source and of a canvas (the words that are already there). Each slot (a place
// before, between or after these words) gets a label. The caller must then set the targets of the labels
// (Labels::choices). `source` includes [CLS] and [SEP], `canvas` does not. `name` is the document's name, a number.
Example canvas_example(InsertionForm form, const Tokens& source, const Tokens& canvas, int name,
                       const ObjectiveOptions& options);

// Draws a canvas of a target: a random subset of `words`, the target without [SEP]. The draw depends only on the seed,
// the name of the sentence, the step and the index of the canvas (InsertionRule::canvas).
struct DrawnCanvas {
    Tokens words;
    Choices missing;  // for each slot, the words that are missing there, with their shares of the loss
};
DrawnCanvas draw_canvas(const Tokens& words, const Sentence& sentence, const ObjectiveOptions& options);

// Adds the rows of a canvas to an example: [CLS] (except with InsertionForm::either_side), the words and [SEP], at the
// positions from `position` on. Each slot of the canvas gets a label without targets; with either_side, each slot of
// the rows before the canvas gets one, too.
void push_canvas(Example& example, InsertionForm form, const Tokens& words, int position, int name,
                 const ObjectiveOptions& options);

// `words` are the missing words of one slot. Returns the share of each word in the slot's loss; the shares add up to 1.
//                                                                            Stern et al. 2019, equations 10, 11 and 14
Numbers order_weights(const Tokens& words, const InsertionRule& rule);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Rows and labels of insertion models, for training and for generation.
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

enum class InsertionForm {
    two_stacks,   // the encoder reads the source, the decoder reads [CLS] canvas [SEP]
    one_stack,    // [CLS] source [SEP] [CLS] canvas [SEP]; slots only in the canvas
    either_side,  // [CLS] source [SEP] canvas [SEP]; slots in source and canvas
};

// Makes the rows of a source, [CLS] ... [SEP], and of a canvas, and a label for each slot. The caller sets the choices
// of the labels.
Example canvas_example(InsertionForm form, const std::vector<int>& source, const std::vector<int>& canvas, int name,
                       const ObjectiveOptions& options);

// Returns the share of each missing word of a slot; the sum is 1.            Stern et al. 2019, equations 10, 11 and 14
std::vector<double> order_weights(const std::vector<int>& words, const InsertionRule& rule);

}  // namespace masquerade

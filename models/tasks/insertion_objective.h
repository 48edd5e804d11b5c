// SPDX-License-Identifier: MIT
// Rows and questions of insertion, for training and for generation.
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

enum class InsertionForm {
    two_stacks,   // the encoder reads the source, the decoder reads [CLS] canvas [SEP]
    one_stack,    // [CLS] source [SEP] [CLS] canvas [SEP]; slots only in the canvas
    either_side,  // [CLS] source [SEP] canvas [SEP]; slots in source and canvas
};

// The rows of a source, [CLS] ... [SEP], and a canvas, and a question for each slot. The caller sets the choices.
Example canvas_example(InsertionForm form, const std::vector<int>& source, const std::vector<int>& canvas, int name,
                       const ObjectiveOptions& options);

// The shares of a slot's missing words, in their order; they sum to 1.       Stern et al. 2019, equations 10, 11 and 14
std::vector<double> order_weights(const std::vector<int>& words, const InsertionRule& rule);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Rows and questions of insertion: the same for training and for writing.
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

enum class InsertionForm {
    two_stacks,   // the encoder reads the source, the decoder [CLS] canvas [SEP]
    one_stack,    // [CLS] source [SEP] [CLS] canvas [SEP]; slots of the canvas alone
    either_side,  // [CLS] source [SEP] canvas [SEP]; slots of both
};

// The rows of a source, [CLS] ... [SEP], and a canvas, and a question to each slot; its choices are the caller's.
Example canvas_example(InsertionForm form, const std::vector<int>& source, const std::vector<int>& canvas, int name,
                       const ObjectiveOptions& options);

// The shares of the words that a slot lacks, in their order: they sum to 1.  Stern et al. 2019, equations 10, 11 and 14
std::vector<double> order_weights(const std::vector<int>& words, const InsertionRule& rule);

}  // namespace masquerade

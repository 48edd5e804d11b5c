// SPDX-License-Identifier: MIT
// The attention probabilities of a run for one line of text.
#pragma once
#include "models/runs/run.h"

namespace masquerade {

// The probabilities that one attention op computes for a document.
struct AttentionMap {
    std::string path;            // of the op, such as "layer.0.attention"
    Strings rows, columns;       // the tokens of the queries and of the keys
    std::vector<Vectors> heads;  // heads[h][i][j]: probability that row i gives to column j; -1 if it cannot see it
    Vectors mean() const;        // the mean over the heads
};

// Computes the loss of the first example of `text` without dropout, and returns the probabilities of its attention ops,
// in the order of computation. The run must be on the CPU. Returns an empty list if no attention op of the run has
// probabilities.
std::vector<AttentionMap> attention_maps(Run& run, const TrainingText& text);

// Returns a text of one line: the first held-out line or, if there is none, the first training line. The result has no
// line if the run generates its examples itself.
TrainingText first_line(const TrainingText& text);
// Returns a text of one example, a sentence or source<TAB>target. Throws BadUsage, with a message that begins with
// `what`, if a run that wants this kind of text cannot read the line.
TrainingText given_line(const std::string& line, TextKind wanted, const std::string& what);

}  // namespace masquerade

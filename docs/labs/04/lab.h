// SPDX-License-Identifier: MIT
// Lab 4: what is to be written in lab.cpp. A batch holds its documents one after the other. Each document is its
// source, whose first row is [CLS], and then its target; either half may be empty. Rows of different documents never
// read each other.
#pragma once
#include <string>

#include "engine/ops/visible.h"
#include "models/masks/builder.h"
#include "models/masks/mask.h"

namespace masquerade {

// Prefix language model: the source reads the whole source; the target reads the source, and of itself the rows up to
// its own.
SegmentGraph prefix_lm(const Documents& documents);  // Raffel et al. 2020

// [CLS] reads the whole source; the rest of the source reads the source without [CLS]; the target reads [CLS], and of
// itself the rows up to its own. What a row sees is listed in the order of the text. A document without a source is a
// plain language model.
SegmentGraph one_way(const Documents& documents);

// one_way through a window: a row reads the rows of its own segment that are at most `radius` places away, and all that
// it reads of other segments.
SegmentGraph one_way_near(const Documents& documents, int radius);

// one_way for two rows of one document, from the length of its source and the rows' positions, which count from 0:
// whether row i reads row j. To be written without segments.
bool one_way_sees(int source, int i, int j);

// Any graph as a picture: for each of the rows 0 to rows - 1 of a batch a line, in which place j is '#' where the row
// reads row j of source 0, else '.'; each line ends with '\n'. A row that is in no query segment reads nothing.
std::string picture(const SegmentGraph& graph, int rows);

}  // namespace masquerade

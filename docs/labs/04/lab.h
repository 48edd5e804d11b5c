// SPDX-License-Identifier: MIT
// Lab 4: the functions that you write in lab.cpp. A batch contains its documents one after the other. A document
// consists of a source, whose first row is [CLS], and a target after it. Each of the two halves may be empty. Rows of
// different documents never read each other.
#pragma once
#include <string>

#include "engine/ops/visible.h"
#include "models/masks/builder.h"
#include "models/masks/mask.h"

namespace masquerade {

// The mask of a prefix language model. Each row of the source reads the whole source. Each row of the target reads the
// whole source, and the rows of the target up to itself.
SegmentGraph prefix_lm(const Documents& documents);  // Raffel et al. 2020

// [CLS] reads the whole source. Each other row of the source reads the source without [CLS]. Each row of the target
// reads [CLS], and the rows of the target up to itself. The segments that a row sees are listed in the order of the
// text. In a document without a source, the target is a plain (causal) language model.
SegmentGraph one_way(const Documents& documents);

// one_way() with a window. A row reads the rows that one_way() allows: in other segments all of them, but in its own
// segment only rows that are at most `radius` places away.
SegmentGraph one_way_near(const Documents& documents, int radius);

// Returns whether row i reads row j in the mask of one_way(). i and j are positions in one document, counted from 0,
// and `source` is the length of its source. Write this function without segments.
bool one_way_sees(int source, int i, int j);

// Returns a picture of any graph, with a line for each of the rows 0 to rows - 1 of a batch. In the line of row i,
// character j is '#' if row i reads row j of key tensor 0 (KeySegment::source), and '.' otherwise. Each line ends with
// '\n'. A row that is in no query segment reads nothing.
std::string picture(const SegmentGraph& graph, int rows);

}  // namespace masquerade

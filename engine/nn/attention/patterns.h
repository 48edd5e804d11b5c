// SPDX-License-Identifier: MIT
// Helpers of the kinds that are softmax attention under a fixed pattern of positions.
#pragma once
#include "engine/nn/attention/softmax.h"

namespace masquerade {

// Returns the graph with this pattern in all query segments.
SegmentGraph with_pattern(SegmentGraph graph, const SegmentPattern& pattern);

// Returns the reason why a kind with a pattern cannot honour a mask, or an empty string. `from_start` says whether the
// pattern counts positions from the first token of a text, as blocks and global positions do.
std::string pattern_refuses(const SegmentGraph& graph, bool from_start);

// Returns l, the stride or the block size of a pattern: `stride` or, if `stride` is 0, the rounded square root of the
// number of positions.
int stride_or_root(int stride, int positions);

}  // namespace masquerade

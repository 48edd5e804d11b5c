// SPDX-License-Identifier: MIT
// What a record of attention (engine/nn/functions.h) keeps beside its tensors, for tools that read the tape.
#pragma once
#include "engine/ops/table.h"

namespace masquerade {

// Record("attention"): reads q, then every kv; makes y and lse.
struct AttentionAttributes {
    const SegmentGraph* graph;
    AttentionRule rule;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The attributes of a record of attention (engine/nn/functions.h), for tools that read the tape.
#pragma once
#include "engine/ops/table.h"

namespace masquerade {

// Record("attention"): reads q, then every kv; makes y and lse.
struct AttentionAttributes {
    const SegmentGraph* graph;
    AttentionRule rule;
};

}  // namespace masquerade

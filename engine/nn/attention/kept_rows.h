// SPDX-License-Identifier: MIT
// Joins all key rows of an attention call into one key source (KeySegment::source 0), for the kinds that sort rows
// (lsh, sinkhorn). The key rows are the rows of Keys::memory, the rows of Keys::x and, in generation, the rows in the
// decoding state.
#pragma once
#include "engine/nn/attention/kept.h"
#include "engine/nn/attention/kinds.h"

namespace masquerade {

struct KeyRows {
    std::vector<Tensor*> tensors;
    const SegmentGraph* graph = nullptr;  // the mask, in which KeySegment::source is 0 for all keys
};

// Returns the key rows of a call. Each tensor of `own` has a row for each row of keys.x, and each tensor of `memory` a
// row for each row of keys.memory; an empty list means that the call has no such rows. If the call has a decoding
// state, made by kept_rows(), the rows are stored there, and a decoding step returns all rows of the state.
KeyRows key_rows(Tape& tape, const std::vector<Tensor*>& memory, const std::vector<Tensor*>& own,
                 const AttentionContext& context, const std::string& name);
// Returns an empty decoding state, with one tensor of columns[i] columns for each i. The tensors have the type and the
// device of `like`.
std::unique_ptr<AttentionState> kept_rows(const Slots& slots, const Tensor& like, const std::vector<int>& columns);

}  // namespace masquerade

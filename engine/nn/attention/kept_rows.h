// SPDX-License-Identifier: MIT
// All keys of a call as rows of one tensor, for kinds that sort the rows: those of Keys::memory, those of Keys::x and,
// in generation, those of the earlier steps.
#pragma once
#include "engine/nn/attention/kept.h"
#include "engine/nn/attention/kinds.h"

namespace masquerade {

struct KeyRows {
    std::vector<Tensor*> tensors;
    const SegmentGraph* graph = nullptr;  // the mask, in which all keys are rows of source 0
};

// Returns the key rows of a call. `own` are tensors with a row for each row of keys.x, and `memory` the same for
// keys.memory; a list is empty if the call has no such rows. If the call has a decoding state, which kept_rows() has
// made, the function stores the rows there, and in a step returns all rows of the state.
KeyRows key_rows(Tape& tape, const std::vector<Tensor*>& memory, const std::vector<Tensor*>& own,
                 const AttentionContext& context, const std::string& name);
// Returns an empty decoding state for tensors with these numbers of columns, of the type and on the device of `like`.
std::unique_ptr<AttentionState> kept_rows(const Slots& slots, const Tensor& like, const std::vector<int>& columns);

}  // namespace masquerade

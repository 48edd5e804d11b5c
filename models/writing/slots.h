// SPDX-License-Identifier: MIT
// Which slot of the attention's states each prefix has, from step to step.
#pragma once
#include <vector>

#include "models/nets/backbone.h"
#include "models/writing/search.h"

namespace masquerade {

class PrefixSlots {
  public:
    // No prefix yet.
    void start(const Slots& slots);
    // The prefixes of this step: each keeps the slot of the one it continues; where several continue one, all but the
    // first get a copy of what the layers keep of it.
    void follow(Tape& tape, const std::vector<NextToken::Row>& rows, const std::vector<LayerState>& layers);
    // After follow(): the first row of prefix i, its next token among them.
    int first_row(std::size_t i) const { return slots_.row(slot_of_[i], slots_.backward ? written_ : 0); }
    Step step(Tape& tape) const { return {tape.ints(slot_of_), tape.ints(next_rows_), written_}; }
    int written() const { return written_; }  // tokens of every prefix
    void advance() { written_++; }

  private:
    Slots slots_;
    int written_ = 0;
    std::vector<int> slot_of_;  // of the prefixes; empty before the first token
    std::vector<int> next_rows_;
    std::vector<int> from_slots_, to_slots_, from_rows_, to_rows_;
};

}  // namespace masquerade

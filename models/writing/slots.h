// SPDX-License-Identifier: MIT
// Assigns the prefixes of each step to slots of the decoding states.
#pragma once
#include <vector>

#include "models/nets/backbone.h"
#include "models/writing/search.h"

namespace masquerade {

class PrefixSlots {
  public:
    // Forgets all prefixes.
    void start(const Slots& slots);
    // Assigns the prefixes of this step to slots. A prefix keeps the slot of the prefix that it continues. If several
    // prefixes continue the same one, all but the first get a free slot and a copy of the layers' states.
    void follow(Tape& tape, const std::vector<NextToken::Row>& rows, const std::vector<LayerState>& layers);
    // The first row of prefix i, including the row of its next token. Valid after follow().
    int first_row(std::size_t i) const { return slots_.row(slot_of_[i], slots_.backward ? written_ : 0); }
    Step step(Tape& tape) const { return {tape.ints(slot_of_), tape.ints(next_rows_), written_}; }
    int written() const { return written_; }  // number of tokens of every prefix
    void advance() { written_++; }

  private:
    Slots slots_;
    int written_ = 0;
    std::vector<int> slot_of_;  // slot of each prefix; empty before the first token
    std::vector<int> next_rows_;
    std::vector<int> from_slots_, to_slots_, from_rows_, to_rows_;
};

}  // namespace masquerade

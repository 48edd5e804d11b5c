// SPDX-License-Identifier: MIT
// Assigns the prefixes of each step to slots. A slot is the part of each decoding state (AttentionState) that stores
// the tokens of one prefix.
#pragma once
#include "models/nets/backbone.h"
#include "models/writing/search.h"

namespace masquerade {

class PrefixSlots {
  public:
    // Forgets all prefixes.
    void start(const Slots& slots);
    // Assigns the prefixes of this step to slots. A prefix gets the slot of its parent, the prefix of the previous step
    // that it continues. If several prefixes have the same parent, the first of these prefixes gets the parent's slot.
    // Each of the others gets a free slot, into which copy() must copy the parent's states. Rows of the KV cache that
    // this slot holds already, from a prefix with the same first tokens, are not copied again.
    void follow(const std::vector<NextToken::Row>& rows);
    // Gives every prefix an additional slot, into which copy() must copy the states of the prefix. The additional slots
    // follow the slots of start(). Until the next follow(), first_row() and step() refer to the copies. A row can be
    // added to a copy without changing the prefix.
    void follow_with_copies();
    // Copies the states in `layers` that the last follow() or follow_with_copies() requires.
    void copy(Tape& tape, const std::vector<LayerState>& layers) const;
    bool copies() const { return !from_rows_.empty(); }  // whether copy() has anything to copy
    // Returns the row of the decoding states that holds the leftmost token of prefix i. The prefix includes the token
    // that this step adds, which is the leftmost one if generation is backward. Call this function after follow().
    int first_row(std::size_t i) const { return slots_.row(used_[i], slots_.backward ? written_ : 0); }
    Step step(Tape& tape) const { return {tape.ints(used_), tape.ints(next_rows_), written_}; }
    int written() const { return written_; }  // number of tokens of every prefix, without the one that this step adds
    void advance() { written_++; }

  private:
    void list_rows();

    Slots slots_;
    int written_ = 0;
    // For each prefix of the current step, its slot in the decoding states, and its source; empty before the first
    // step.
    std::vector<int> slot_of_, sources_;
    // The slots to which step() refers: slot_of_ or, after follow_with_copies(), the slots of the copies.
    std::vector<int> used_;
    std::vector<int> next_rows_;
    std::vector<int> from_slots_, to_slots_, from_rows_, to_rows_;
    // For each row of the decoding states, the number of the token that it holds; 0: none. Copies of a token have its
    // number. tokens_ is the largest number.
    std::vector<int> held_;
    int tokens_ = 0;
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "models/writing/slots.h"

namespace masquerade {

void PrefixSlots::start(const Slots& slots) {
    slots_ = slots;
    written_ = 0;
    slot_of_.clear();
}

void PrefixSlots::follow(const std::vector<NextToken::Row>& rows) {
    if (written_ >= slots_.longest) throw Error(text("decode: a target of more than ", slots_.longest, " tokens"));
    if (rows.size() > std::size_t(slots_.count))
        throw Error(text("decode: ", rows.size(), " prefixes, at most ", slots_.count, " were announced"));
    // A slot stores the tokens of one prefix. The first loop gives the slot of each parent prefix to the first prefix
    // that continues it. The second loop gives free slots to the other prefixes.
    std::vector<int> slot(rows.size(), -1);
    std::vector<char> taken(slots_.count, 0);
    for (std::size_t i = 0; i < rows.size() && written_ > 0; i++) {
        const int parent_slot = slot_of_.at(rows[i].parent);
        if (taken[parent_slot]) continue;
        taken[parent_slot] = 1;
        slot[i] = parent_slot;
    }
    from_slots_.clear(), to_slots_.clear();
    int free = 0;
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (slot[i] >= 0) continue;
        while (taken[free]) free++;
        taken[free] = 1;
        slot[i] = free;
        if (written_ > 0) from_slots_.push_back(slot_of_[rows[i].parent]), to_slots_.push_back(free);
    }
    used_ = slot_of_ = slot;
    list_rows();
}

void PrefixSlots::follow_with_copies() {
    from_slots_ = used_ = slot_of_;
    for (int& slot : used_) slot += slots_.count;
    to_slots_ = used_;
    list_rows();
}

// Sets next_rows_ to the rows of the tokens that this step adds, one for each prefix. Sets from_rows_ and to_rows_ to
// the rows of the earlier tokens in from_slots_ and to_slots_.
void PrefixSlots::list_rows() {
    next_rows_.clear();
    for (int each : used_) next_rows_.push_back(slots_.row(each, written_));
    from_rows_.clear(), to_rows_.clear();
    for (std::size_t i = 0; i < from_slots_.size(); i++)
        for (int t = 0; t < written_; t++) {
            from_rows_.push_back(slots_.row(from_slots_[i], t));
            to_rows_.push_back(slots_.row(to_slots_[i], t));
        }
}

void PrefixSlots::copy(Tape& tape, const std::vector<LayerState>& layers) const {
    if (from_rows_.empty()) return;
    const Branches branches{tape.ints(from_slots_), tape.ints(to_slots_), tape.ints(from_rows_), tape.ints(to_rows_)};
    for (const LayerState& layer : layers)
        for (AttentionState* state : {layer.self.get(), layer.cross.get()})
            if (state) state->branch(tape, branches);
}

}  // namespace masquerade

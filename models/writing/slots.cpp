// SPDX-License-Identifier: MIT
#include "models/writing/slots.h"

namespace masquerade {

void PrefixSlots::start(const Slots& slots) {
    slots_ = slots;
    written_ = 0;
    slot_of_.clear();
}

void PrefixSlots::follow(Tape& tape, const std::vector<NextToken::Row>& rows, const std::vector<LayerState>& layers) {
    if (written_ >= slots_.longest) throw Error(text("decode: a target of more than ", slots_.longest, " tokens"));
    if (rows.size() > std::size_t(slots_.count))
        throw Error(text("decode: ", rows.size(), " prefixes, at most ", slots_.count, " were announced"));
    // The first loop passes the slots of the previous step on. The second loop gives a free slot to every other prefix.
    std::vector<int> slot(rows.size(), -1);
    std::vector<char> taken(std::size_t(slots_.count), 0);
    for (std::size_t i = 0; i < rows.size() && written_ > 0; i++) {
        const int parent_slot = slot_of_.at(std::size_t(rows[i].parent));
        if (taken[std::size_t(parent_slot)]) continue;
        taken[std::size_t(parent_slot)] = 1;
        slot[i] = parent_slot;
    }
    for (std::vector<int>* each : {&from_slots_, &to_slots_, &from_rows_, &to_rows_}) each->clear();
    int free = 0;
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (slot[i] >= 0) continue;
        while (taken[std::size_t(free)]) free++;
        taken[std::size_t(free)] = 1;
        slot[i] = free;
        if (written_ == 0) continue;
        const int parent_slot = slot_of_[std::size_t(rows[i].parent)];
        from_slots_.push_back(parent_slot), to_slots_.push_back(free);
        for (int t = 0; t < written_; t++) {
            from_rows_.push_back(slots_.row(parent_slot, t));
            to_rows_.push_back(slots_.row(free, t));
        }
    }
    slot_of_ = slot;
    next_rows_.clear();
    for (int each : slot_of_) next_rows_.push_back(slots_.row(each, written_));
    if (from_slots_.empty()) return;
    const Branches branches{tape.ints(from_slots_), tape.ints(to_slots_), tape.ints(from_rows_), tape.ints(to_rows_)};
    for (const LayerState& layer : layers)
        for (AttentionState* state : {layer.self.get(), layer.cross.get()})
            if (state) state->branch(tape, branches);
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "models/writing/slots.h"

namespace masquerade {

void PrefixSlots::start(const Slots& slots) {
    slots_ = slots;
    written_ = 0;
    slot_of_.clear();
    held_.assign(2 * std::size_t(slots.count) * slots.longest, 0);
    tokens_ = 0;
}

void PrefixSlots::follow(const std::vector<NextToken::Row>& rows) {
    if (written_ >= slots_.longest) throw Error("decode: a target of more than ", slots_.longest, " tokens");
    if (rows.size() > std::size_t(slots_.count))
        throw Error("decode: ", rows.size(), " prefixes, at most ", slots_.count, " were announced");
    // A slot stores the tokens of one prefix. The first loop gives the slot of each parent prefix to the first prefix
    // that continues it. The second loop gives free slots to the other prefixes: if possible, the slot of a prefix of
    // the same source that nothing continues, because its first tokens are often the same.
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
    std::size_t before = 0;  // index of a prefix of the previous step; these are sorted by source, as `rows` are
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (slot[i] >= 0) continue;
        while (before < slot_of_.size() && (sources_[before] < rows[i].source || taken[slot_of_[before]])) before++;
        const bool same_source = before < slot_of_.size() && sources_[before] == rows[i].source;
        while (taken[free]) free++;
        slot[i] = same_source ? slot_of_[before] : free;
        taken[slot[i]] = 1;
        if (written_ > 0) from_slots_.push_back(slot_of_[rows[i].parent]), to_slots_.push_back(slot[i]);
    }
    used_ = slot_of_ = slot;
    sources_.clear();
    for (const NextToken::Row& row : rows) sources_.push_back(row.source);
    list_rows();
}

void PrefixSlots::follow_with_copies() {
    from_slots_ = used_ = slot_of_;
    for (int& slot : used_) slot += slots_.count;
    to_slots_ = used_;
    list_rows();
}

// Sets next_rows_ to the rows of the tokens that this step adds, one for each prefix. Sets from_rows_ and to_rows_ to
// the rows of the earlier tokens in from_slots_ and to_slots_, except those that to_slots_ holds already: prefixes of
// one source often differ only in their last tokens.
void PrefixSlots::list_rows() {
    from_rows_.clear(), to_rows_.clear();
    for (std::size_t i = 0; i < from_slots_.size(); i++)
        for (int t = 0; t < written_; t++) {
            const int from = slots_.row(from_slots_[i], t), to = slots_.row(to_slots_[i], t);
            if (held_[to] == held_[from]) continue;
            from_rows_.push_back(from), to_rows_.push_back(to);
            held_[to] = held_[from];
        }
    next_rows_.clear();
    for (int each : used_) {
        next_rows_.push_back(slots_.row(each, written_));
        held_[next_rows_.back()] = ++tokens_;
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

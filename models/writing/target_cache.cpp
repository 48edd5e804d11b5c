// SPDX-License-Identifier: MIT
#include "models/writing/target_cache.h"

#include <algorithm>
#include <numeric>

namespace masquerade {

void KeptKeys::allocate(const Backbone& stack, const std::string& path, std::int64_t rows, int first, bool states,
                        bool cross) {
    first_ = first;
    rows_.resize(std::size_t(rows));
    std::iota(rows_.begin(), rows_.end(), 0);
    layers_.clear();
    buffers_.clear();
    for (int i = first; i < stack.options.layers; i++) {
        const Block& block = stack.layers[std::size_t(i)];
        const Attention& attention = cross ? block.cross() : block.attention();
        Tensor t;
        t.path = path;
        t.shape = {rows, states ? attention.state_numbers() : attention.kept_columns()};
        t.dtype = states ? arithmetic_of(stack.storage()) : stack.storage();
        t.device = stack.device();
        buffers_.emplace_back(t.bytes(), t.device);
        t.value = buffers_.back().data();
        layers_.push_back(t);
    }
}

void TargetCache::start(const Backbone& stack, int slots, int longest, bool backward) {
    backward_ = backward;
    slots_ = slots;
    longest_ = longest;
    written_ = 0;
    slot_of_.clear();
    const Block* block = stack.layers.empty() ? nullptr : &stack.layers[0];
    states_ = block && block->attention().state_numbers() > 0;
    keys_.allocate(stack, "cache.target", std::int64_t(slots) * (states_ ? 1 : longest), 0, states_);
    cross_ = KeptKeys(), near_ = KeptKeys();
    near_of_each_ = block ? block->attention().near_rows() : 0;
    if (near_of_each_ > 0) near_.allocate(stack, "cache.near", std::int64_t(slots) * near_of_each_);
    if (block && block->shape.cross && block->cross().state_numbers() > 0)
        cross_.allocate(stack, "cache.cross", slots, 0, true, true);
}

void TargetCache::follow(Tape& tape, const std::vector<NextToken::Row>& rows) {
    if (written_ >= longest_) throw Error(text("decode: a target of more than ", longest_, " tokens"));
    if (rows.size() > std::size_t(slots_))
        throw Error(text("decode: ", rows.size(), " prefixes, at most ", slots_, " were announced"));
    std::vector<int> slot(rows.size(), -1);
    std::vector<char> taken(std::size_t(slots_), 0);
    for (std::size_t i = 0; i < rows.size() && written_ > 0; i++) {
        const int before = slot_of_.at(std::size_t(rows[i].parent));
        if (taken[std::size_t(before)]) continue;
        taken[std::size_t(before)] = 1;
        slot[i] = before;
    }
    for (std::vector<int>* each : {&from_, &to_, &near_from_, &near_to_}) each->clear();
    int free = 0;
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (slot[i] >= 0) continue;
        while (taken[std::size_t(free)]) free++;
        taken[std::size_t(free)] = 1;
        slot[i] = free;
        for (int t = 0; t < (states_ ? std::min(written_, 1) : written_); t++) {
            from_.push_back(row(slot_of_[std::size_t(rows[i].parent)], t));
            to_.push_back(row(free, t));
        }
        for (int t = 0; written_ > 0 && t < near_of_each_; t++) {
            near_from_.push_back(slot_of_[std::size_t(rows[i].parent)] * near_of_each_ + t);
            near_to_.push_back(free * near_of_each_ + t);
        }
    }
    slot_of_ = slot;
    if (from_.empty()) return;
    for (KeptKeys* kept : {&keys_, &cross_, &near_})
        for (Tensor& own : kept->all()) {  // first read, then write: a slot may be both
            const auto &from = kept == &near_ ? near_from_ : from_, &to = kept == &near_ ? near_to_ : to_;
            store_rows(embedding(tape, tape.ints(from), &own, "continued")->view(), tape.ints(to), own.view());
        }
}

std::vector<int> TargetCache::near_rows() const {
    std::vector<int> rows;
    for (int slot : slot_of_)
        for (int t = 0; t < near_of_each_; t++) rows.push_back(slot * near_of_each_ + t);
    return rows;
}

std::vector<int> TargetCache::next_rows() const {
    std::vector<int> rows;
    for (int slot : slot_of_) rows.push_back(row(slot, written_));
    return rows;
}

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "engine/tape/plan.h"

#include <algorithm>
#include <limits>

#include "engine/base/error.h"
#include "engine/tensor/copy.h"

namespace masquerade {

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::size_t place_blocks(std::vector<ArenaBlock>& blocks) {
    std::vector<ArenaBlock*> order;
    for (ArenaBlock& b : blocks) order.push_back(&b);
    std::stable_sort(order.begin(), order.end(), [](ArenaBlock* a, ArenaBlock* b) { return a->bytes > b->bytes; });
    struct Placed {
        std::size_t offset, end;
        int first, last;
    };
    std::vector<Placed> placed;  // sorted by offset, so that the search can stop at the first gap that fits
    placed.reserve(order.size());
    std::size_t top = 0;
    for (ArenaBlock* b : order) {
        const std::size_t bytes = rounded(b->bytes);
        b->offset = 0;
        auto p = placed.begin();
        for (; p != placed.end() && p->offset < b->offset + bytes; ++p)
            if (p->first <= b->last && b->first <= p->last) b->offset = std::max(b->offset, p->end);
        const auto place = std::upper_bound(placed.begin(), p, b->offset, [](std::size_t offset, const Placed& other) {
            return offset < other.offset;
        });
        placed.insert(place, {b->offset, b->offset + bytes, b->first, b->last});
        top = std::max(top, b->offset + bytes);
    }
    return top;
}

void Arena::begin_step(const std::string& bucket, bool rehearsal) {
    log_.clear();  // the log still lists the blocks of the previous step if that step was not ended
    loose_.clear();
    auto found = plans_.find(bucket);
    plan_ = blocks_ == Blocks::planned && found != plans_.end() ? &found->second : nullptr;
    rehearses_ = rehearsal && blocks_ == Blocks::planned && !plan_;
    bucket_ = bucket;
    next_ = side_by_side_ = 0;
    clock_ = 0;
    stepping_ = true;
}

void* Arena::take(std::size_t bytes, int* block) {
    if (!stepping_) throw Error("arena: a block is taken outside a step; call begin_step first");
    *block = int(next_++);
    if (plan_) {
        if (next_ > plan_->size() || (*plan_)[next_ - 1].bytes != bytes)
            throw Error("arena: block ", next_ - 1, " of ", bytes, " bytes differs from the plan of bucket ", bucket_,
                        "; a bucket must name everything that sizes depend on");
        return static_cast<char*>(base_.data()) + (*plan_)[next_ - 1].offset;
    }
    log_.push_back(ArenaBlock{bytes, clock_, clock_, 0});
    const std::size_t place = side_by_side_;
    side_by_side_ += rounded(bytes);
    if (rehearses_) return reinterpret_cast<void*>(std::uintptr_t(64) + place);
    if (blocks_ == Blocks::kept && side_by_side_ <= base_.bytes()) return static_cast<char*>(base_.data()) + place;
    loose_.emplace_back(bytes, device_);
    return loose_.back().data();
}

void Arena::touch(int block) {
    if (block >= 0 && !plan_) log_[block].last = std::max(log_[block].last, clock_);
}

void Arena::retain(int block) {
    constexpr int end = std::numeric_limits<int>::max();
    if (block < 0) return;
    if (!plan_)
        log_[block].last = end;
    else if ((*plan_)[block].last != end)
        throw Error("arena: block ", block, " was not retained when bucket ", bucket_,
                    " was planned, and its place is used again; retain it in every step");
}

void Arena::tick() {
    if (poison_ && plan_)
        for (const ArenaBlock& b : *plan_)
            if (b.last == clock_) fill_bytes(static_cast<char*>(base_.data()) + b.offset, 0xff, b.bytes, device_);
    clock_++;
}

void Arena::end_step() {
    stepping_ = false;
    if (plan_) return;
    unplanned_ = std::max(unplanned_, side_by_side_);
    loose_.clear();  // freed before base_ grows, because the device may not have memory for both
    std::size_t bytes = 0;
    if (blocks_ == Blocks::planned) bytes = place_blocks(log_);
    if (blocks_ == Blocks::kept) bytes = side_by_side_;
    // On a device, a step whose blocks do not fit into base_ cannot be captured as a graph (tape/rehearsal.h). If steps
    // grow little by little, extra room makes such steps rare.
    if (blocks_ == Blocks::kept && bytes > base_.bytes() && device_ != Device::cpu) bytes += bytes / 2;
    if (bytes > base_.bytes()) {
        base_ = Buffer();
        base_ = Buffer(bytes, device_);
    }
    if (blocks_ == Blocks::planned) plans_[bucket_] = std::move(log_);
    log_.clear();
}

const std::vector<ArenaBlock>* Arena::plan(const std::string& bucket) const {
    auto found = plans_.find(bucket);
    return found == plans_.end() ? nullptr : &found->second;
}

}  // namespace masquerade

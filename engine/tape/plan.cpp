// SPDX-License-Identifier: MIT
#include "engine/tape/plan.h"

#include <algorithm>
#include <limits>

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/tensor/copy.h"

namespace masquerade {

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
        const std::size_t bytes = rounded_up(b->bytes, 64);
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
    live_.clear();
    loose_.clear();
    auto found = plans_.find(bucket);
    plan_ = found != plans_.end() ? &found->second : nullptr;
    rehearses_ = rehearsal && blocks_ == Blocks::planned && !plan_;
    bucket_ = bucket;
    next_ = followed_ = side_by_side_ = top_ = 0;
    clock_ = 0;
    stepping_ = true;
}

std::size_t Arena::place(std::size_t bytes) {
    const std::size_t number = log_.size();
    if (followed_ < number || number >= plan_->size() || (*plan_)[number].first != clock_) return top_;
    followed_++;
    live_.erase(std::remove_if(live_.begin(), live_.end(), [&](const ArenaBlock& b) { return b.last < clock_; }),
                live_.end());
    ArenaBlock block{rounded_up(bytes, 64), clock_, (*plan_)[number].last, 0};
    auto next = live_.begin();
    for (; next != live_.end() && next->offset < block.offset + block.bytes; ++next)
        block.offset = next->offset + next->bytes;
    live_.insert(next, block);
    return block.offset;
}

void* Arena::take(std::size_t bytes, int* block) {
    if (!stepping_) throw Error("arena: a block is taken outside a step; call begin_step first");
    *block = int(next_++);
    if (planned()) {
        if (next_ > plan_->size() || (*plan_)[next_ - 1].bytes != bytes)
            throw Error("arena: block ", next_ - 1, " of ", bytes, " bytes differs from the plan of bucket ", bucket_,
                        "; a bucket must name everything that sizes depend on");
        return base_.at((*plan_)[next_ - 1].offset);
    }
    const std::size_t offset = plan_ ? place(bytes) : side_by_side_, end = offset + rounded_up(bytes, 64);
    log_.push_back(ArenaBlock{bytes, clock_, clock_, 0});
    side_by_side_ += rounded_up(bytes, 64);
    top_ = std::max(top_, end);
    if (rehearses_) return reinterpret_cast<void*>(std::uintptr_t(64) + offset);
    if (uses_base() && end <= base_.bytes()) return base_.at(offset);
    loose_.emplace_back(bytes, device_);
    return loose_.back().data();
}

void Arena::touch(int block) {
    if (block < 0 || planned()) return;
    if (std::size_t(block) < followed_ && (*plan_)[block].last < clock_)
        throw Error("arena: block ", block, " is used at tick ", clock_, ", but at tick ", (*plan_)[block].last,
                    " for the last time in the step that planned bucket ", bucket_,
                    "; steps that run different ops need different buckets");
    log_[block].last = std::max(log_[block].last, clock_);
}

void Arena::retain(int block) {
    constexpr int end = std::numeric_limits<int>::max();
    if (block < 0) return;
    if ((planned() || std::size_t(block) < followed_) && (*plan_)[block].last != end)
        throw Error("arena: block ", block, " was not retained when bucket ", bucket_,
                    " was planned, and its place is used again; retain it in every step");
    if (!planned()) log_[block].last = end;
}

void Arena::tick() {
    const auto poison = [&](const std::vector<ArenaBlock>& blocks) {
        for (const ArenaBlock& b : blocks)
            if (b.last == clock_ && b.offset + b.bytes <= base_.bytes())
                fill_bytes(base_.at(b.offset), 0xff, b.bytes, device_);
    };
    if (poison_ && plan_) poison(planned() ? *plan_ : live_);
    clock_++;
}

void Arena::end_step() {
    stepping_ = false;
    if (planned()) return;
    unplanned_ = std::max(unplanned_, side_by_side_);
    loose_.clear();  // freed before base_ grows, because the device may not have memory for both
    const bool plans = (blocks_ == Blocks::planned || blocks_ == Blocks::reused) &&
                       (!plan_ || followed_ < log_.size() || log_.size() < plan_->size());
    std::size_t bytes = uses_base() ? top_ : 0;
    if (plans) bytes = place_blocks(log_);
    // On a device, a step whose blocks do not fit into base_ cannot be captured as a graph (tape/rehearsal.h). If steps
    // grow little by little, extra room makes such steps rare.
    if (uses_base() && bytes > base_.bytes() && device_ != Device::cpu) bytes += bytes / 2;
    if (bytes > base_.bytes()) {
        base_ = Buffer();
        base_ = Buffer(bytes, device_);
    }
    if (plans) plans_[bucket_] = std::move(log_);
    log_.clear();
}

const std::vector<ArenaBlock>* Arena::plan(const std::string& bucket) const {
    auto found = plans_.find(bucket);
    return found == plans_.end() ? nullptr : &found->second;
}

}  // namespace masquerade

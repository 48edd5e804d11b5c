// SPDX-License-Identifier: MIT
// Memory of one step of a tape. In training the first step of a bucket (a signature of sizes) takes loose blocks, or is
// a rehearsal (tape/rehearsal.h), and notes at which tick of the tape each is first and last used; later steps of the
// same bucket get fixed places inside one buffer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/tensor/buffer.h"

namespace masquerade {

struct ArenaBlock {
    std::size_t bytes = 0;
    int first = 0, last = 0;  // ticks, both inclusive
    std::size_t offset = 0;
};

// Gives every block an offset so that no two that live at one tick overlap: largest first, into the lowest gap that
// fits. Returns the bytes the whole needs.
std::size_t place_blocks(std::vector<ArenaBlock>& blocks);

enum class Blocks {
    planned,  // as said above
    loose,    // each on its own, gone after the step
    kept      // side by side in one buffer that stays, for steps of ever new sizes without a backward
};

class Arena {
  public:
    explicit Arena(Device device = Device::cpu, Blocks blocks = Blocks::planned) : device_(device), blocks_(blocks) {}

    // A step before it that was not ended, because something threw, leaves no plan. In a rehearsal of a bucket without
    // a plan blocks are addresses without memory.
    void begin_step(const std::string& bucket, bool rehearsal = false);
    // A block for use from this tick on, 64-byte aligned; its number is for touch().
    void* take(std::size_t bytes, int* block);
    // The block is used at this tick.
    void touch(int block);
    // The block stays until the end of the step: somebody reads it from outside. In every step of a bucket, or none.
    void retain(int block);
    void tick();
    void end_step();

    Device device() const { return device_; }
    bool planned() const { return plan_ != nullptr; }
    bool rehearses() const { return rehearses_; }
    // Fill blocks with NaN as soon as they die: a backward that reads what it did not declare meets NaN.
    void set_poison(bool on) { poison_ = on; }
    // The buffer, as large as the largest step so far needs; and what such blocks take side by side.
    std::size_t planned_bytes() const { return base_.bytes(); }
    std::size_t unplanned_bytes() const { return unplanned_; }
    const std::vector<ArenaBlock>* plan(const std::string& bucket) const;

  private:
    Device device_;
    Blocks blocks_;
    bool poison_ = false, stepping_ = false, rehearses_ = false;
    std::map<std::string, std::vector<ArenaBlock>> plans_;
    std::vector<ArenaBlock>* plan_ = nullptr;
    std::string bucket_;
    std::vector<ArenaBlock> log_;
    std::vector<Buffer> loose_;
    Buffer base_;
    std::size_t next_ = 0, unplanned_ = 0, side_by_side_ = 0;  // the last in bytes, of this step
    int clock_ = 0;
};

}  // namespace masquerade

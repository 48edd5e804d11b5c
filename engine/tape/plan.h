// SPDX-License-Identifier: MIT
// The memory for one step of a tape. During training, the first step of a bucket (a name for all sizes of a step)
// either allocates every block separately or is a rehearsal (tape/rehearsal.h). It records when each block is first and
// last used, in ticks of the tape. Later steps of this bucket place their blocks at planned offsets inside one buffer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/tensor/buffer.h"

namespace masquerade {

struct ArenaBlock {
    std::size_t bytes = 0;
    int first = 0, last = 0;  // ticks of the first and last use, both inclusive
    std::size_t offset = 0;
};

// Assigns every block an offset so that no two blocks that are alive at the same tick overlap. Blocks are placed from
// the largest to the smallest, each into the lowest gap that fits. Returns the size of the buffer, in bytes.
std::size_t place_blocks(std::vector<ArenaBlock>& blocks);

enum class Blocks {
    planned,  // planned offsets in one buffer, as described at the top of this file
    loose,    // a separate allocation per block, freed after the step
    kept      // side by side in one buffer that later steps reuse; for steps without a backward whose sizes vary
};

class Arena {
  public:
    explicit Arena(Device device = Device::cpu, Blocks blocks = Blocks::planned) : device_(device), blocks_(blocks) {}

    // Begins a step. If an exception ended the previous step, that step leaves no plan. In a rehearsal of a bucket
    // without a plan, blocks have addresses but no memory.
    void begin_step(const std::string& bucket, bool rehearsal = false);
    // Returns a 64-byte aligned block that may be used from this tick on, and sets *block to its number for touch().
    void* take(std::size_t bytes, int* block);
    // Notes that the block is used at this tick.
    void touch(int block);
    // Keeps the block until the end of the step, because code outside the tape reads it. A block must be retained in
    // every step of a bucket or in none.
    void retain(int block);
    void tick();
    void end_step();

    Device device() const { return device_; }
    bool planned() const { return plan_ != nullptr; }
    bool rehearses() const { return rehearses_; }
    // If on, fills each block with NaN after its last use, so that a backward that reads a value it did not declare
    // reads NaN.
    void set_poison(bool on) { poison_ = on; }
    // planned_bytes: size of the buffer, which fits the largest step so far. unplanned_bytes: size of the largest step
    // that had no plan, in which no two blocks share memory.
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
    // next_: number of the next block. side_by_side_: bytes of all blocks of this step if no two share memory.
    // unplanned_: the largest side_by_side_ of a step without a plan.
    std::size_t next_ = 0, unplanned_ = 0, side_by_side_ = 0;
    int clock_ = 0;
};

}  // namespace masquerade

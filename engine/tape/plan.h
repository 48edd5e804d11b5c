// SPDX-License-Identifier: MIT
// The memory for the tensors of one step of a tape. All steps with the same tensor sizes form a bucket, which has a
// name. During training, the first step of a bucket either allocates every block separately, or is rehearsed: the step
// runs once without computing anything (tape/rehearsal.h). This first run records when each block is first and last
// used. The recorded times determine a plan, which gives each block an offset in one buffer. All later runs of steps of
// the bucket, including the rehearsed step itself, place their blocks at these offsets. The unit of time is the tick:
// one tick for each forward and each backward of an op.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/tensor/buffer.h"

namespace masquerade {

struct ArenaBlock {
    std::size_t bytes = 0;
    int first = 0, last = 0;  // times of the first and last use, in ticks, both inclusive
    std::size_t offset = 0;
};

// Assigns every block an offset in one buffer. Blocks that are in use at the same tick never overlap. Blocks are
// placed from the largest to the smallest, each at the lowest free offset. Returns the size of the buffer, in bytes.
std::size_t place_blocks(std::vector<ArenaBlock>& blocks);

enum class Blocks {
    planned,  // planned offsets in one buffer, as described at the top of this file
    loose,    // a separate allocation for each block, freed after the step
    kept,     // one after the other in one buffer that later steps reuse; for steps of varying sizes without a backward
    // Like `kept`, but blocks also reuse the memory of earlier blocks of the same step. The first step of a bucket
    // records when each block is first and last used. Later steps place each block at the lowest offset that is free
    // from its first to its last use. All steps of a bucket must run the same ops; the sizes may vary.
    reused
};

class Arena {
  public:
    explicit Arena(Device device = Device::cpu, Blocks blocks = Blocks::planned) : device_(device), blocks_(blocks) {}

    // Begins a step. If end_step() was not called for the previous step, for example because of an exception, the
    // previous step leaves no plan. If `rehearsal` is true and the bucket has no plan, blocks have addresses but no
    // memory (Blocks::planned only).
    void begin_step(const std::string& bucket, bool rehearsal = false);
    // Returns a block of memory, aligned to 64 bytes, that may be used from the current tick on (the tick of one
    // forward or backward of an op). Sets *block to the number of the block, for touch() and retain().
    void* take(std::size_t bytes, int* block);
    // Notes that the block is used at the current tick, that is, by the op that is about to run.
    void touch(int block);
    // Keeps the block until the end of the step, because code outside the tape reads it. A block must be retained in
    // every step of a bucket or in none.
    void retain(int block);
    void tick();
    void end_step();

    Device device() const { return device_; }
    bool planned() const { return plan_ && blocks_ == Blocks::planned; }
    bool rehearses() const { return rehearses_; }
    // For tests: if `on` is true, steps with a plan fill each block with NaN after its last use. If a backward reads a
    // tensor that is missing from Record::keep, or other code reads a tensor that it did not retain, they read NaN.
    void set_poison(bool on) { poison_ = on; }
    // planned_bytes() returns the size of the buffer, which fits the largest step so far. unplanned_bytes() returns
    // the largest total size of the blocks of a step that was not planned(), as if no two blocks shared memory.
    std::size_t planned_bytes() const { return base_.bytes(); }
    std::size_t unplanned_bytes() const { return unplanned_; }
    const std::vector<ArenaBlock>* plan(const std::string& bucket) const;

  private:
    // Whether base_ holds the blocks of any step that is not too large for it.
    bool uses_base() const { return blocks_ == Blocks::kept || blocks_ == Blocks::reused; }
    // Returns the offset of the next block of a step with a plan (Blocks::reused), and reserves its bytes.
    std::size_t place(std::size_t bytes);

    Device device_;
    Blocks blocks_;
    bool poison_ = false, stepping_ = false, rehearses_ = false;
    std::map<std::string, std::vector<ArenaBlock>> plans_;
    std::vector<ArenaBlock>* plan_ = nullptr;
    std::string bucket_;
    std::vector<ArenaBlock> log_;
    // Blocks::reused: live_ holds the placed blocks that are still in use, sorted by offset. A step follows the plan as
    // long as it takes each block at the same tick. followed_ counts the blocks until then, and later blocks share no
    // memory. A step may follow the plan although it runs other ops; touch() therefore refuses a use after the last use
    // in the plan.
    std::vector<ArenaBlock> live_;
    std::size_t followed_ = 0;
    std::vector<Buffer> loose_;
    Buffer base_;
    // next_ is the number of the next block. side_by_side_ is the total size of all blocks of a step that is not
    // planned(). unplanned_ is the largest side_by_side_ of all steps so far. top_ is the end of the highest block of
    // this step.
    std::size_t next_ = 0, unplanned_ = 0, side_by_side_ = 0, top_ = 0;
    int clock_ = 0;
};

}  // namespace masquerade

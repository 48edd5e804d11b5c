// SPDX-License-Identifier: MIT
// Integer arrays (labels, positions, segment bounds) that the host passes to the ops of one step. On the CPU, ops read
// them in the caller's memory. For any other device, this class is the only place that uploads them: each array once
// per step, into memory that the next step reuses, so that a step no larger than an earlier one allocates nothing.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

class Inputs {
  public:
    explicit Inputs(Device device) : device_(device) {}

    // Begins a step. The arrays uploaded for the previous step may be overwritten.
    void begin_step();
    // Returns the array at an address that the ops of this step can read. The array must stay in place and unchanged
    // until the step ends: a repeated request is recognised by its address and length.
    Ints ints(const std::vector<int>& numbers);

  private:
    struct GivenInts {
        const int* given;
        Ints there;
    };
    const char* upload(const void* data, std::size_t bytes);

    Device device_;
    std::vector<Buffer> blocks_;  // the last block is being filled
    std::size_t used_ = 0;        // bytes used in the last block
    std::vector<GivenInts> ints_;
};

}  // namespace masquerade

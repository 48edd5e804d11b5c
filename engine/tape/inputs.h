// SPDX-License-Identifier: MIT
// Passes integer arrays (labels, positions, row indices) from the host to the ops of one step. On the CPU, ops read
// an array in the caller's memory. For any other device, this class copies each array to the device once per step,
// into memory that later steps reuse.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

class Inputs {
  public:
    explicit Inputs(Device device) : device_(device) {}

    // Begins a step. Arrays of the new step will overwrite the arrays of the previous step on the device.
    void begin_step();
    // Returns the array in memory that the ops of this step can read: the array itself on the CPU, otherwise a copy
    // on the device. The vector must stay in place and unchanged until the step ends. If a vector is passed twice in a
    // step, the second call recognises the vector by address and length, and returns the same copy.
    Ints ints(const std::vector<int>& numbers);

  private:
    const char* upload(const void* data, std::size_t bytes);

    Device device_;
    std::vector<Buffer> blocks_;  // the last block is being filled
    std::size_t used_ = 0;        // bytes used in the last block
    std::vector<Ints> ints_;      // the arrays of this step on the device
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Passes integer arrays (labels, positions, segment bounds) from the host to the ops of one step. On the CPU, ops read
// an array in the caller's memory. For any other device, this class uploads each array once per step, into memory that
// later steps reuse.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

class Inputs {
  public:
    explicit Inputs(Device device) : device_(device) {}

    // Begins a step. Its arrays overwrite those of the previous step.
    void begin_step();
    // Returns the array where the ops of this step can read it: the array itself on the CPU, otherwise a copy. The
    // vector must stay in place and unchanged until the step ends: a second call recognises it by its address and
    // length.
    Ints ints(const std::vector<int>& numbers);

  private:
    struct UploadedInts {
        const int* host;
        Ints device;
    };
    const char* upload(const void* data, std::size_t bytes);

    Device device_;
    std::vector<Buffer> blocks_;  // the last block is being filled
    std::size_t used_ = 0;        // bytes used in the last block
    std::vector<UploadedInts> ints_;
};

}  // namespace masquerade

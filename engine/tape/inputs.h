// SPDX-License-Identifier: MIT
// The whole numbers that the host gives the ops of a step beside tensors. On the CPU ops read them where the caller
// keeps them. For another device this is the one place that uploads them: each once a step, into memory that is used
// again in the next one, so that steps no larger than an earlier one allocate nothing.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

class Inputs {
  public:
    explicit Inputs(Device device) : device_(device) {}

    // Begins a step: the numbers that the last step was given may be overwritten.
    void begin_step();
    // The same numbers where the ops of this step can read them. What is given must outlive the step unchanged: it is
    // known again by its address.
    Ints ints(const std::vector<int>& numbers);

  private:
    struct GivenInts {
        const int* given;
        Ints there;
    };
    const char* upload(const void* data, std::size_t bytes);

    Device device_;
    std::vector<Buffer> blocks_;  // the last one is being filled
    std::size_t used_ = 0;        // of it
    std::vector<GivenInts> ints_;
};

}  // namespace masquerade

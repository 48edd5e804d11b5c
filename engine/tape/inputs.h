// SPDX-License-Identifier: MIT
// What the host gives the ops of a step beside tensors: whole numbers and the tables of masks. On the CPU ops read
// them where the caller keeps them. For another device this is the one place that uploads them: each once a step,
// into memory that is used again in the next one, so that steps no larger than an earlier one allocate nothing.
#pragma once
#include <deque>
#include <vector>

#include "engine/ops/segments.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

class Inputs {
  public:
    explicit Inputs(Device device) : device_(device) {}

    // What the last step was given may be overwritten.
    void begin_step();
    // The same numbers, or the same graph, where the ops of this step can read them. What is given must outlive the
    // step unchanged: it is known again by its address.
    Ints ints(const std::vector<int>& numbers);
    const SegmentGraph& graph(const SegmentGraph& graph);

  private:
    struct GivenInts {
        const int* given;
        Ints there;
    };
    struct GivenGraph {
        const SegmentGraph* given = nullptr;
        SegmentGraph there;
    };
    const char* upload(const void* data, std::size_t bytes);

    Device device_;
    std::vector<Buffer> blocks_;  // the last one is being filled
    std::size_t used_ = 0;        // of it
    std::vector<GivenInts> ints_;
    std::deque<GivenGraph> graphs_;  // longer than graph_count_: their memory is used again
    std::size_t graph_count_ = 0;
    std::vector<char> packed_;
};

}  // namespace masquerade

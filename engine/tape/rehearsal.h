// SPDX-License-Identifier: MIT
// The first step of a bucket on a device, asked for twice. The first time nothing is computed: ops and copies do
// nothing, tensors get addresses without memory, and the arena notes when each is used. So the memory of a step is
// planned before any is taken; loose blocks for all tensors of a step take twice as much as the plan.
#pragma once
#include <functional>
#include <string>

#include "engine/tape/tape.h"

namespace masquerade {

// Rehearses a step of training: work() asks for all of it, from the loss to the optimiser, and reads nothing back (an
// Error). Does nothing on the CPU, if the bucket has a plan, if an observer wants to see every op, or if `wanted` is
// false. Throws BadInput if the device has too little memory for the plan. True if it was rehearsed: then the step that
// follows is the bucket's first and is best run op by op, since kernels are loaded there, cuBLASLt chooses its
// algorithms and ops take the memory they work in, none of which belongs into a captured graph.
bool rehearse(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool wanted,
              const std::function<void()>& work);

// A step of training on a device as one graph. What ops and copies ask for while this lives is written down; run() has
// it done at once, so that the device never waits for the host between two kernels. The bits are those of op by op.
class CapturedStep {
  public:
    // After tape.begin(). Nothing is captured, and ops run as they are called, on the CPU, where nobody wants it, where
    // an observer looks at every op, and where memory is not planned yet.
    CapturedStep(const Tape& tape, bool wanted);
    ~CapturedStep();  // a step that threw is forgotten
    CapturedStep(const CapturedStep&) = delete;
    // Launches it; from here on results can be read.
    void run(const std::string& bucket);

  private:
    bool capturing_;
};

// A step of training: rehearsed if the bucket is new, then computed, as one captured graph if `graph` is true. Results
// can be read until tape.end().
void run_step(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool graph,
              const std::function<void()>& work);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Plans the memory of a bucket on a device before the first step of that bucket is computed. The step runs twice. In
// the first run, the rehearsal, ops and copies do nothing, tensors get addresses but no memory, and the arena notes
// when each block is used. Without a rehearsal, the first step would take twice the memory: a block for each tensor.
#pragma once
#include <functional>
#include <string>

#include "engine/tape/tape.h"

namespace masquerade {

// Rehearses a training step. work() must call all ops of the step, from the loss to the optimiser, and may not read
// numbers back from the device (Error). Does nothing on the CPU, if the bucket already has a plan, if an observer is
// attached, or if `wanted` is false. Throws BadInput if the device has too little memory for the plan.
//
// Returns true if the step was rehearsed. The next step, the first computed one of its bucket, should then run op by
// op: it loads kernels, lets cuBLASLt choose its algorithms and allocates the workspaces of ops, none of which may
// happen in a captured graph.
bool rehearse(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool wanted,
              const std::function<void()>& work);

// Captures a training step on a device as one CUDA graph. While this object is alive, ops and copies are recorded;
// run() launches them together, so that the device never waits for the host between two kernels. The results are
// bit-identical to running op by op.
class CapturedStep {
  public:
    // Call after tape.begin(). On the CPU, if `wanted` is false, if an observer is attached, or if the memory of this
    // step is not planned yet, nothing is captured: ops run when they are called.
    CapturedStep(const Tape& tape, bool wanted);
    ~CapturedStep();  // discards the recorded step if run() was not reached
    CapturedStep(const CapturedStep&) = delete;
    // Launches the graph. After this call, the results can be read.
    void run(const std::string& bucket);

  private:
    bool capturing_;
};

// Runs a training step on a device. If `graph` is false, it runs op by op. If `graph` is true, the first step of a
// bucket is rehearsed and then runs op by op, and later steps run as one captured graph. On the CPU, `graph` has no
// effect. The results can be read until tape.end().
void run_step(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool graph,
              const std::function<void()>& work);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Plans the memory of a bucket (all training steps with the same tensor sizes) on a device before the first step of
// the bucket is computed. That step runs twice. In the first run, the rehearsal, ops and copies do nothing, tensors
// get addresses but no memory, and the arena notes when each block is used. Without a rehearsal, the first step would
// need much more memory than later steps, because each tensor would have a separate block.
#pragma once
#include <functional>
#include <string>

#include "engine/tape/tape.h"

namespace masquerade {

// Rehearses a training step. work() must call all ops of the step, from the embedding to the optimiser. It must not
// read numbers back from the device, else Error is thrown. Does nothing on the CPU, if the arena never makes plans or
// already has a plan for the bucket, if an observer is attached to the tape, or if `wanted` is false. Throws BadInput
// if the device has too little memory for the plan.
//
// Returns true if the step was rehearsed. The caller should then compute this step op by op, not as a captured graph:
// it is the first of its bucket, so it loads kernels, lets cuBLASLt choose algorithms and allocates the workspaces of
// ops, which do not belong in a graph.
bool rehearse(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool wanted,
              const std::function<void()>& work);

// Captures a training step on a device as one CUDA graph. Until run() is called, ops and copies are recorded but not
// executed. run() launches them together, so that the device never waits for the host between two kernels. The
// results have the same bits as if each op had run when it was called.
class CapturedStep {
  public:
    // Must be called after tape.begin(). Captures nothing on the CPU, if `wanted` is false, if an observer is
    // attached to the tape, or if the memory of this step is not planned yet. Each op then runs when it is called.
    CapturedStep(const Tape& tape, bool wanted);
    ~CapturedStep();  // discards the recorded ops if run() has not been called
    CapturedStep(const CapturedStep&) = delete;
    // Launches the graph, if ops were captured. After this call, the results can be read.
    void run(const std::string& bucket);

  private:
    bool capturing_;
};

// Runs a training step; work() calls its ops. If `graph` is true, the first step of a bucket is rehearsed and then runs
// op by op, and each later step runs as one captured graph. Steps always run op by op if `graph` is false, on the CPU,
// if an observer is attached to the tape, or if the arena makes no plans. The results can be read until tape.end().
void run_step(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool graph,
              const std::function<void()>& work);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Plans the memory of a bucket (all training steps with the same tensor sizes) on a device before the first step of
// the bucket is computed. That step runs twice. In the first run, the rehearsal, ops and copies do nothing, tensors
// get addresses but no memory, and the arena notes when each block is used. Without a rehearsal, the first step would
// need much more memory than later steps, because each tensor would have a separate block. Also runs a step, or a pass
// without a backward, as one CUDA graph.
#pragma once
#include <functional>
#include <string>

#include "engine/tape/tape.h"

namespace masquerade {

// Rehearses a training step. work() must call all ops of the step, from the embedding to the optimiser. If work() reads
// numbers back from the device, Error is thrown. Throws BadInput if the device has too little memory for the plan. Does
// nothing in each of these cases: the tape is on the CPU; the arena never makes plans; the arena already has a plan for
// the bucket; an observer is attached to the tape; `wanted` is false.
//
// Returns true if the step was rehearsed. The caller should then compute this step op by op, not as a captured graph:
// the first step of a bucket loads kernels, lets cuBLASLt choose algorithms and allocates the workspaces of ops. This
// work must not be part of a graph.
bool rehearse(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool wanted,
              const std::function<void()>& work);

// Captures a training step on a device as one CUDA graph. Until run() is called, ops and copies are recorded but not
// executed. run() launches them together, so that the device never waits for the host between two kernels. The
// results have the same bits as if each op had run when it was called.
class CapturedStep {
  public:
    // Must be called after tape.begin(). Captures nothing in each of these cases: the tape is on the CPU; `wanted` is
    // false; an observer is attached to the tape; the memory of this step is not planned yet. Each op then runs when it
    // is called.
    CapturedStep(const Tape& tape, bool wanted) : CapturedStep(wanted && tape.planned() && can_capture(tape)) {}
    // Captures the ops if `wanted` is true. Set `wanted` only if can_capture() is true.
    explicit CapturedStep(bool wanted);
    ~CapturedStep();  // discards the recorded ops if run() has not been called
    CapturedStep(const CapturedStep&) = delete;
    // Launches the graph under the name `bucket`, if ops were captured. After this call, the results can be read.
    void run(const std::string& bucket);

    // Returns false if ops cannot be captured: on the CPU, or if an observer is attached to the tape.
    static bool can_capture(const Tape& tape) { return tape.device != Device::cpu && !tape.observed(); }

  private:
    bool capturing_;
};

// Runs a training step; work() calls its ops. If `graph` is true, the first step of a bucket is rehearsed and then runs
// op by op, and each later step runs as one captured graph. work() must be repeatable: if the ops of a captured step
// need more working memory than earlier steps, work() is called a second time, and its ops then run one by one. All
// steps run op by op if `graph` is false, if the tape is on the CPU, if an observer is attached, or if the arena makes
// no plans. The results can be read until tape.end().
void run_step(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool graph,
              const std::function<void()>& work);

// Runs a pass without a backward, such as a step of decoding, as one captured graph; work() calls its ops. Passes with
// an equal `name` must call the same ops, on tensors of any size. work() must be repeatable: if the ops cannot be
// captured, work() is called a second time, and its ops then run one by one. The usual reason is that the pass needs
// more memory than all earlier passes, because no tensor can be allocated during a capture. If work() fails for another
// reason, the second call throws the error. If `graph` is false, if the tape is on the CPU or if an observer is
// attached, work() is called once, and its ops run one by one. The results can be read until tape.end().
void run_pass(Tape& tape, const std::string& name, bool graph, const std::function<void()>& work);

}  // namespace masquerade

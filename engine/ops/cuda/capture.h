// SPDX-License-Identifier: MIT
// Captures a step of training or decoding as a CUDA graph, and launches the graph (capture.cu). Also declares what ops
// and copies need for this: the number of the capture, memory for data that is sent to the GPU, and functions that
// report a failure later.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/tensor/runtime.h"

namespace masquerade::cuda {

bool capturing();
// Must be called before memory is allocated for an op or a copy. Throws OutgrownInCapture during a capture.
void expect_no_capture(std::size_t bytes);
// Returns a number that changes whenever a capture begins or ends. If data was sent to the GPU while this number had
// another value, the data must be sent again: the earlier capture may have been abandoned, and a graph that is captured
// now would not contain the copy.
std::uint64_t capture_number();

// Memory for data that is sent to the GPU. `here` is pinned (page-locked) host memory, which the caller fills. During a
// capture, `there` is the memory of the GPU that holds the same bytes while the graph runs, because launch_graph()
// sends everything that was staged. Otherwise `there` is null, and the caller must request a copy from `here` before
// the next call of stage().
struct Staged {
    char *here = nullptr, *there = nullptr;
};
Staged stage(std::size_t bytes);

// Functions that must not throw pass the status of a call to report_later(). report() is called when the host waits for
// the GPU, and when a graph is launched. If a call has failed since the last report(), report() throws Error.
void report_later(int status, const char* what) noexcept;
void report();

void begin_graph();
void launch_graph(const char* name);
void abandon_graph() noexcept;

}  // namespace masquerade::cuda

// SPDX-License-Identifier: MIT
// Captures a step (forward, backward and update of one batch) as a CUDA graph and launches the graph (capture.cu). Also
// declares two things that ops and copies need during a capture: the number of the capture, and pinned memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade::cuda {

bool capturing();
// Returns a number that changes whenever a capture begins or ends. If data was sent to the GPU while this number had
// another value, the data must be sent again: the earlier capture may have been abandoned, and a graph that is captured
// now would not contain the copy.
std::uint64_t capture_number();

// Returns `bytes` bytes of pinned (page-locked) host memory, for data that will be copied to the GPU. No other call
// of stage() returns this memory until forget_staged() is called.
void* stage(std::size_t bytes);
// Lets stage() hand out all its memory again. Call this only when all work on the stream has ended, including the
// graphs that were launched.
void forget_staged();

void begin_graph();
void launch_graph(const char* name);
void abandon_graph() noexcept;

}  // namespace masquerade::cuda

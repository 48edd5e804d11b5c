// SPDX-License-Identifier: MIT
// Captures a step as a CUDA graph and launches the graph (capture.cu). Also contains what ops and copies need during
// a capture: its number, and pinned memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade::cuda {

bool capturing();
// Returns a number that changes whenever a capture begins or ends. If data was sent to the GPU under another number,
// it must be sent again: that capture may have been abandoned, and the graph of the present capture does not contain
// the copy.
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

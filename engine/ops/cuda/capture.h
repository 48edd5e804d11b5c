// SPDX-License-Identifier: MIT
// The state that ops and copies need while a step is captured as a CUDA graph (capture.cu).
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade::cuda {

bool capturing();
// Returns a number that changes whenever a capture begins or ends. Data sent to the GPU under an earlier number must be
// sent again: the earlier capture may have been abandoned, and the graph of this capture does not contain the copy.
std::uint64_t capture_number();

// Returns pinned host memory, for data that will be copied to the GPU. No other call gets this memory before
// forget_staged().
void* stage(std::size_t bytes);
// Makes all memory of stage() available again. Must be called only when all work on the stream has ended, including
// captured steps.
void forget_staged();

void begin_graph();
void launch_graph(const char* name);
void abandon_graph() noexcept;

}  // namespace masquerade::cuda

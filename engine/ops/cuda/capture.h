// SPDX-License-Identifier: MIT
// The state that ops and copies need while a step is captured as a CUDA graph (capture.cu).
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade::cuda {

bool capturing();
// Changes whenever a capture begins or ends. What was sent to the GPU under an earlier number may never have arrived,
// or may not be sent again when the graph is replayed.
std::uint64_t capture_number();

// Pinned host memory for numbers on their way to the GPU. It stays unchanged until all requested work has ended,
// including that of a captured step.
void* stage(std::size_t bytes);
// Makes the memory available again. Call it when all that work has ended.
void forget_staged();

void begin_graph();
void launch_graph(const char* name);
void abandon_graph() noexcept;

}  // namespace masquerade::cuda

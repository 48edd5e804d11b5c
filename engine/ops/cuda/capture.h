// SPDX-License-Identifier: MIT
// The state that ops and copies must know while a step is being captured as a CUDA graph (capture.cu).
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade::cuda {

bool capturing();
// Another one whenever a capture begins or ends. What was put onto the GPU under an earlier number may never have got
// there, or, in the next replay, may not get there again.
std::uint64_t capture_number();

// Pinned memory of the host for numbers on their way to the GPU. It stays as it is until all work that was asked for
// has ended, a captured step's included.
void* stage(std::size_t bytes);
// All that work has ended.
void forget_staged();

void begin_graph();
void launch_graph(const char* name);
void abandon_graph() noexcept;

}  // namespace masquerade::cuda

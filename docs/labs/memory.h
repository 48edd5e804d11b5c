// SPDX-License-Identifier: MIT
// Replaces operator new to count the allocated memory. A program may include this file only once.
#pragma once
#include <cstdlib>
#include <new>

#include "docs/labs/check.h"

namespace {
std::size_t taken = 0;  // bytes that were allocated; freed memory is not subtracted
}
void* operator new(std::size_t bytes) {
    taken += bytes;
    if (void* p = std::malloc(bytes)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

// Returns the number of bytes that f allocates. If the student's functions run in another process, returns the increase
// of the other process's peak address space instead.
inline std::size_t memory_of(const std::function<void()>& f) {
    if (memory_elsewhere) return memory_elsewhere(f);
    taken = 0;
    f();
    return taken;
}

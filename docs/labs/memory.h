// SPDX-License-Identifier: MIT
// Replaces operator new to count the allocated memory. A program may include this file only once.
#pragma once
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "docs/labs/check.h"

namespace {
std::size_t held = 0, most = 0;  // bytes that are allocated now, and at most since memory_of() began
}
void* operator new(std::size_t bytes) {
    void* p = std::malloc(bytes > 0 ? bytes : 1);
    if (!p) throw std::bad_alloc();
    most = std::max(most, held += malloc_usable_size(p));
    return p;
}
void operator delete(void* p) noexcept {
    if (p) held -= malloc_usable_size(p);
    std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }

// Returns the number of bytes that f holds at most, of those that come from `new`. If the student's functions run in
// another process, returns the increase of the other process's peak address space instead.
inline std::size_t memory_of(const std::function<void()>& f) {
    if (memory_elsewhere) return memory_elsewhere(f);
    const std::size_t before = most = held;
    f();
    return most - before;
}

// SPDX-License-Identifier: MIT
// Counts memory by an operator new of its own; a check includes it once.
#pragma once
#include <cstdlib>
#include <new>

#include "docs/labs/check.h"

namespace {
std::size_t taken = 0;  // bytes, by what is counted
}
void* operator new(std::size_t bytes) {
    taken += bytes;
    if (void* p = std::malloc(bytes)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

// The bytes that f takes.
inline std::size_t memory_of(const std::function<void()>& f) {
    if (memory_elsewhere) return memory_elsewhere(f);
    taken = 0;
    f();
    return taken;
}

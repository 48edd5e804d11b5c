// SPDX-License-Identifier: MIT
// Scratch memory of ops. Each thread has its own scratch memory. The memory only grows, so that an op allocates nothing
// after it has run at its largest shape.
#pragma once
#include <cstddef>
#include <new>

#include "engine/base/memory.h"

namespace masquerade {

class Workspace {
  public:
    Workspace() = default;
    Workspace(const Workspace&) = delete;
    ~Workspace() { release_aligned(data_, capacity_); }

    void* reserve(std::size_t bytes) {
        if (bytes > capacity_) {
            release_aligned(data_, capacity_);
            data_ = nullptr, capacity_ = 0;
            data_ = allocate_aligned(bytes);
            if (!data_) throw std::bad_alloc();
            capacity_ = bytes;
        }
        return data_;
    }

  private:
    void* data_ = nullptr;
    std::size_t capacity_ = 0;
};

// Returns memory of the calling thread for `count` objects of type T, 64-byte aligned. Contents from an earlier call
// may be lost. Each use passes its own Tag, a type that only its file declares. Uses with the same Tag and the same T
// share their memory.
template <class Tag, class T = float>
T* workspace(std::size_t count) {
    thread_local Workspace memory;
    return static_cast<T*>(memory.reserve(count * sizeof(T)));
}

}  // namespace masquerade

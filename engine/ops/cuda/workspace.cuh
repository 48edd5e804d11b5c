// SPDX-License-Identifier: MIT
// Scratch memory of the ops on the device. A workspace only grows, so that an op allocates nothing after it has run at
// its largest shape, and it never grows while a CUDA graph is captured (OutgrownInCapture). When a workspace grows, its
// old memory is not released, because a CUDA graph that was captured earlier may still use the old memory. Sizes are
// powers of two, so that all old memory of a workspace together is smaller than the memory that the workspace now uses.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "engine/ops/cuda/kernel.cuh"
#ifdef __CUDACC__
#include "engine/ops/cuda/capture.h"
#else
#include "engine/base/memory.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif
#endif

namespace masquerade::DEVICE {

// The number of bytes that all workspaces have allocated.
inline std::size_t& bytes_of_workspaces() {
    static std::size_t bytes = 0;
    return bytes;
}

class Workspace {
  public:
    void* reserve(std::size_t bytes) {
        if (bytes > capacity_) {
            std::size_t larger = std::size_t(64) << 10;
            while (larger < bytes) larger *= 2;
            data_ = instead_of(data_, capacity_, larger);
            capacity_ = larger;
        }
        forget(data_, bytes, capacity_);
        return data_;
    }

  private:
#ifdef __CUDACC__
    static void* instead_of(void*, std::size_t, std::size_t bytes) {
        expect_no_capture(bytes);
        use_gpu();
        void* data = nullptr;
        check(cudaMalloc(&data, bytes), "taking ", bytes, " bytes of memory for an op to work in");
        bytes_of_workspaces() += bytes;
        return data;
    }
    static void forget(void*, std::size_t, std::size_t) {}
#else
    static void* instead_of(void* outgrown, std::size_t before,
                            std::size_t bytes) {  // the tests use no CUDA graphs, so old memory is released
        void* data = allocate_aligned(bytes);
        if (!data) throw Error("no ", bytes, " bytes of memory for an op to work in");
        std::free(outgrown);
        bytes_of_workspaces() += bytes - before;
        return data;
    }
    // Fills the memory with NaN, so that tests notice if an op uses what an earlier call has left there. Also makes the
    // address sanitizer report any access beyond the requested bytes.
    static void forget(void* data, std::size_t bytes, std::size_t capacity) {
        ASAN_UNPOISON_MEMORY_REGION(data, capacity);
        std::memset(data, 0xff, capacity);
        ASAN_POISON_MEMORY_REGION(static_cast<char*>(data) + bytes, capacity - bytes);
    }
#endif

    void* data_ = nullptr;
    std::size_t capacity_ = 0;
};

// Returns memory for `count` objects of type T. On a GPU, the memory is aligned to at least 256 bytes. Contents from an
// earlier call may be lost. Each use passes its own Tag, a type that only the file of the use declares; uses with the
// same Tag share their memory.
template <class Tag, class T = float>
T* workspace(std::int64_t count) {
    static Workspace memory;
    return static_cast<T*>(memory.reserve(std::size_t(count) * sizeof(T)));
}

}  // namespace masquerade::DEVICE

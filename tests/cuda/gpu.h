// SPDX-License-Identifier: MIT
// The device of the cases named "gpu: ...": the library that MASQUERADE_CUDA names, or the one that lies beside the
// tests, if a GPU answers it. The library tests/cuda/library/fake.cpp may play the GPU: then a machine without one runs
// these cases, too.
#pragma once
#include "tests/cuda/fake_device.h"
#include "tests/ptx/stream.h"

namespace masquerade {

// Null if there is no library, if it is refused, or if no GPU answers. Opened once.
inline const CudaLibrary* gpu() {
    static const CudaLibrary* const found = []() -> const CudaLibrary* {
        const char* named = std::getenv("MASQUERADE_CUDA");
        const std::string path = named && *named ? named : beside_the_tests("libmasquerade_cuda.so");
        if (!std::filesystem::exists(path)) return nullptr;
        try {
            const CudaLibrary& library = open_cuda_library(path);
            return library.runtime.answer().devices > 0 ? &library : nullptr;
        } catch (const Error& e) {
            std::fprintf(stderr, "note: %s; the cases of a GPU are skipped\n", e.what());
            return nullptr;
        }
    }();
    return found;
}

// A function of the library that MASQUERADE_CUDA names, or null.
template <class Function>
Function* function_of_gpu(const char* name) {
    const char* const path = std::getenv("MASQUERADE_CUDA");
    void* const library = gpu() && path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}
// The counts of the stand-in for CUDA's runtime (tests/ptx). Null if another library plays the GPU.
inline const ptx::StreamCounts* stand_in_counts() {
    const auto counts = function_of_gpu<ptx::StreamCounts*()>("stream_counts");
    return counts ? counts() : nullptr;
}
// philox_beside_curand() of tests/cuda/oracle: in the stand-in's library, or in one that lies beside the tests. Null if
// there is none.
inline auto philox_beside_curand() {
    using Function = int(int count, const void* questions, void* answers);
    Function* found = function_of_gpu<Function>("philox_beside_curand");
    void* const library = found ? nullptr : dlopen(beside_the_tests("curand.so").c_str(), RTLD_NOW);
    return library ? reinterpret_cast<Function*>(dlsym(library, "philox_beside_curand")) : found;
}

// Device::cuda is the GPU while this lives.
class Gpu {
  public:
    Gpu() { use_cuda_library(gpu()); }
    Gpu(const Gpu&) = delete;
    ~Gpu() { use_cuda_library(nullptr); }
};

}  // namespace masquerade

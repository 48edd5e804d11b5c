// SPDX-License-Identifier: MIT
// The device of the test cases named "gpu: ...". Its library is the one that MASQUERADE_CUDA names or, if the variable
// is not set, libmasquerade_cuda.so beside the tests. The cases run only if the library finds a GPU. MASQUERADE_CUDA
// may also name the fake library (tests/cuda/library/fake.cpp), so that these cases run on a machine without a GPU,
// too.
#pragma once
#include "tests/cuda/fake_device.h"
#include "tests/ptx/stream.h"

namespace masquerade {

// Returns the library, which is opened at the first call. Returns null if there is no library, if it is refused, or if
// it finds no GPU.
inline const CudaLibrary* gpu() {
    static const CudaLibrary* const found = []() -> const CudaLibrary* {
        const char* named = std::getenv("MASQUERADE_CUDA");
        const std::string path = named && *named ? named : beside_the_tests("libmasquerade_cuda.so");
        if (!std::filesystem::exists(path)) return nullptr;
        try {
            const CudaLibrary& library = open_cuda_library(path);
            return library.runtime.answer(0).devices > 0 ? &library : nullptr;
        } catch (const Error& e) {
            std::fprintf(stderr, "note: %s; the cases of a GPU are skipped\n", e.what());
            return nullptr;
        }
    }();
    return found;
}

// Returns the function of this name in the library that MASQUERADE_CUDA names, or null if there is none.
template <class Function>
Function* function_of_gpu(const char* name) {
    const char* const path = std::getenv("MASQUERADE_CUDA");
    void* const library = gpu() && path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}
// Returns the counts of the stand-in for CUDA's runtime (tests/ptx), or null if the library was built without the
// stand-in.
inline const ptx::StreamCounts* stand_in_counts() {
    const auto counts = function_of_gpu<ptx::StreamCounts*()>("stream_counts");
    return counts ? counts() : nullptr;
}
// Returns philox_beside_curand() of tests/cuda/oracle, from the library that MASQUERADE_CUDA names or else from
// curand.so beside the tests. Returns null if neither has the function.
inline auto philox_beside_curand() {
    using Function = int(int count, const void* questions, void* answers);
    Function* found = function_of_gpu<Function>("philox_beside_curand");
    void* const library = found ? nullptr : dlopen(beside_the_tests("curand.so").c_str(), RTLD_NOW);
    return library ? reinterpret_cast<Function*>(dlsym(library, "philox_beside_curand")) : found;
}

// While a Gpu exists, Device::cuda is the device of gpu().
class Gpu {
  public:
    Gpu() { use_cuda_library(gpu()); }
    Gpu(const Gpu&) = delete;
    ~Gpu() { use_cuda_library(nullptr); }
};

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// While a FakeDevice exists, Device::cuda works without a GPU. Its library is tests/cuda/library/fake.cpp, which
// computes with the CPU's ops in memory that the host cannot access.
#pragma once
#include <dlfcn.h>

#include <doctest/doctest.h>

#include <vector>

#include "engine/ops/library.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"
#include "tests/cuda/library/fake.h"
#include "tests/folder.h"

namespace masquerade {

// Returns the path of a file that the Makefile has put beside this program, such as "fake_cuda.so".
inline std::string beside_the_tests(const std::string& name) {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

// Copies 300 numbers between -3 and 3 to the device, computes their gelu there, and returns the results.
inline std::vector<float> gelu_by(Device device) {
    std::vector<float> x(300), y(300, -1);
    for (std::size_t i = 0; i < x.size(); i++) x[i] = 0.02f * float(i) - 3;
    const Shape shape{std::int64_t(x.size())};
    Buffer from(4 * x.size(), device), to(4 * x.size(), device);
    View a{from.data(), DType::f32, device, shape, "a"}, b{to.data(), DType::f32, device, shape, "b"};
    copy({x.data(), DType::f32, Device::cpu, shape, "x"}, a);
    gelu_forward(a, GeluKind::erf, b);
    copy(b, {y.data(), DType::f32, Device::cpu, shape, "y"});
    return y;
}

class FakeDevice {
  public:
    explicit FakeDevice(const std::string& file = "fake_cuda.so") : library(open_cuda_library(beside_the_tests(file))) {
        void* handle = dlopen(beside_the_tests(file).c_str(), RTLD_NOW | RTLD_NOLOAD);
        REQUIRE(handle != nullptr);
        auto entry = reinterpret_cast<FakeEntry>(dlsym(handle, "fake_control"));
        REQUIRE(bool(entry));
        control = entry();
        *control = FakeControl();
        control->backing = &op_table(Device::cpu);
        use_cuda_library(&library);
    }
    FakeDevice(const FakeDevice&) = delete;
    ~FakeDevice() {
        use_cuda_library(nullptr);
        CHECK(control->blocks == 0);
    }

    const CudaLibrary& library;
    FakeControl* control = nullptr;
};

}  // namespace masquerade

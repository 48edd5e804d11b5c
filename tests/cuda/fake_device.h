// SPDX-License-Identifier: MIT
// Device::cuda without a GPU, while it lives: the library of tests/cuda/library/fake.cpp, computing with the CPU's ops.
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

// The path of a file that the Makefile has put beside this program: "fake_cuda.so" ...
inline std::string beside_the_tests(const std::string& name) {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

// gelu of numbers from -3 to 3, brought to the device and back.
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

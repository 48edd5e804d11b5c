// SPDX-License-Identifier: MIT
// An owned block of memory, aligned to 64 bytes, on one device. Device::cuda requires the CUDA library to be in use
// (engine/ops/library.h); only ops, copy() and fill_bytes() may access memory on it.
#pragma once
#include <cstddef>
#include <utility>

#include "engine/tensor/device.h"

namespace masquerade {

class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t bytes, Device device = Device::cpu);
    static Buffer zeros(std::size_t bytes, Device device = Device::cpu);
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    Device device() const { return device_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    Device device_ = Device::cpu;
};

}  // namespace masquerade

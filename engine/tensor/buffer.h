// SPDX-License-Identifier: MIT
// Memory that is owned: a block aligned to 64 bytes on one device. On Device::cuda it needs a library in use
// (engine/ops/library.h) and only ops, copy() and fill_bytes() may touch it.
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

// SPDX-License-Identifier: MIT
// A Buffer owns a block of memory on one device, aligned to 64 bytes. Before a Buffer on Device::cuda is made, the CUDA
// library must be in use (engine/ops/library.h). Only ops and the functions of engine/tensor/copy.h may access memory
// on Device::cuda.
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
    char* at(std::size_t byte) const { return static_cast<char*>(data_) + byte; }
    std::size_t bytes() const { return bytes_; }
    Device device() const { return device_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    Device device_ = Device::cpu;
};

}  // namespace masquerade

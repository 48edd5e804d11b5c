// SPDX-License-Identifier: MIT
#include "engine/tensor/buffer.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/runtime.h"

namespace masquerade {
namespace {

// Returns how many bytes of memory the machine can still provide. Linux may grant a block that is larger than this, but
// may kill the program later, when the program writes to the block. If the amount is unknown, returns the largest
// std::size_t.
std::size_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string name, unit;
    for (std::size_t kib; file >> name >> kib; std::getline(file, unit))
        if (name == "MemAvailable:") return kib * 1024;
    return std::numeric_limits<std::size_t>::max();
}

}  // namespace

Buffer::Buffer(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
    if (device == Device::cpu) {
        constexpr std::size_t large = std::size_t(256) << 20;
        bool fits = bytes < large || bytes <= available_memory();
        data_ = fits ? allocate_aligned(bytes) : nullptr;
    } else {
        data_ = cuda_runtime().allocate(bytes);
    }
    if (data_) return;
    std::string there = "out of memory: ", left;
    if (device != Device::cpu) {
        const DeviceFacts facts = cuda_runtime().facts();
        there = "the GPU is out of memory: ";
        left = text(", ", facts.bytes_free >> 20, " of ", facts.bytes >> 20, " MiB free");
    }
    throw BadInput(there, bytes >> 20, " MiB wanted in one piece", left,
                   "; more parts, or a smaller batch_tokens, width or vocabulary, need less");
}

Buffer Buffer::zeros(std::size_t bytes, Device device) {
    Buffer buffer(bytes, device);
    if (device != Device::cpu || !is_zero_when_fresh(bytes)) fill_bytes(buffer.data(), 0, bytes, device);
    return buffer;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    return *this;
}

Buffer::~Buffer() {
    if (device_ == Device::cpu)
        release_aligned(data_, bytes_);
    else if (data_)
        cuda_runtime().release(data_);
}

}  // namespace masquerade

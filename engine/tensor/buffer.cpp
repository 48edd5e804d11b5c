// SPDX-License-Identifier: MIT
#include "engine/tensor/buffer.h"

#include <cstdlib>

#include "engine/base/error.h"

namespace masquerade {

Buffer::Buffer(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
    if (device != Device::cpu) throw Error("no CUDA device answers; use --device cpu");
    std::size_t rounded = (bytes + 63) / 64 * 64;
    data_ = bytes > PTRDIFF_MAX ? nullptr : std::aligned_alloc(64, rounded ? rounded : 64);
    if (!data_)
        throw BadInput(text("out of memory: ", bytes >> 20, " MiB wanted in one piece; a smaller batch_tokens, width or "
                            "vocabulary needs less"));
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    return *this;
}

Buffer::~Buffer() { std::free(data_); }

}  // namespace masquerade

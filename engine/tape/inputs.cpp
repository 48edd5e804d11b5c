// SPDX-License-Identifier: MIT
#include "engine/tape/inputs.h"

#include <algorithm>

#include "engine/base/memory.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/runtime.h"

namespace masquerade {
namespace {

constexpr std::size_t smallest_block = std::size_t(1) << 16, alignment = 64;  // of buffers

}  // namespace

void Inputs::begin_step() {
    ints_.clear();
    used_ = 0;
    if (blocks_.size() < 2) return;
    std::size_t all = 0;  // the previous step needed several blocks; one block of this size replaces them
    for (const Buffer& block : blocks_) all += block.bytes();
    blocks_.clear();
    blocks_.emplace_back(all, device_);
}

const char* Inputs::upload(const void* data, std::size_t bytes) {
    if (const void* sent = cuda_runtime().send_with_graph(data, bytes)) return static_cast<const char*>(sent);
    if (blocks_.empty() || used_ + bytes > blocks_.back().bytes()) {
        blocks_.emplace_back(std::max(smallest_block, rounded_up(bytes, alignment)), device_);
        used_ = 0;
    }
    char* to = blocks_.back().at(used_);
    copy_bytes(data, Device::cpu, to, device_, bytes);
    used_ += rounded_up(bytes, alignment);
    return to;
}

Ints Inputs::ints(const std::vector<int>& numbers) {
    const Ints on_host{numbers.data(), std::int64_t(numbers.size())};
    if (device_ == Device::cpu || numbers.empty()) return on_host;
    for (const UploadedInts& known : ints_)
        if (known.host == on_host.data && known.device.count == on_host.count) return known.device;
    const char* on_device = upload(on_host.data, numbers.size() * sizeof(int));
    ints_.push_back({on_host.data, {reinterpret_cast<const int*>(on_device), on_host.count, on_host.data}});
    return ints_.back().device;
}

}  // namespace masquerade

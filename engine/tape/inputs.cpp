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
    const int* on_host = numbers.data();
    const std::int64_t count = numbers.size();
    if (device_ == Device::cpu || numbers.empty()) return {on_host, count};
    for (const Ints& known : ints_)
        if (known.on_host == on_host && known.count == count) return known;
    const char* on_device = upload(on_host, numbers.size() * sizeof(int));
    ints_.push_back({reinterpret_cast<const int*>(on_device), count, on_host});
    return ints_.back();
}

}  // namespace masquerade

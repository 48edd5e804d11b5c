// SPDX-License-Identifier: MIT
#include "tools/bench/on_device.h"

#include <algorithm>
#include <map>

namespace masquerade {
namespace {

// Of the meter that is alive: a runtime is plain functions, which can carry nothing.
struct Count {
    const DeviceRuntime* runtime = nullptr;
    std::map<void*, std::size_t> blocks;
    std::size_t taken = 0, peak = 0;
};
Count count;

void* allocate(std::size_t bytes) {
    void* data = count.runtime->allocate(bytes);
    if (!data) return nullptr;
    count.blocks[data] = bytes;
    count.taken += bytes;
    count.peak = std::max(count.peak, count.taken);
    return data;
}

void release(void* data) noexcept {
    const auto block = count.blocks.find(data);  // an older one is not counted
    if (block != count.blocks.end()) {
        count.taken -= block->second;
        count.blocks.erase(block);
    }
    count.runtime->release(data);
}

}  // namespace

DeviceMemoryMeter::DeviceMemoryMeter() : runtime_(&cuda_runtime()), counting_(*runtime_) {
    count = {runtime_, {}, 0, 0};
    counting_.allocate = allocate;
    counting_.release = release;
    set_cuda_runtime(&counting_);
}

DeviceMemoryMeter::~DeviceMemoryMeter() { set_cuda_runtime(runtime_); }

std::size_t DeviceMemoryMeter::peak_bytes() const { return count.peak; }

}  // namespace masquerade

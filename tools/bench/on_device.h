// SPDX-License-Identifier: MIT
// Work on a device, as a measurement sees it: when it has ended, and what memory it takes there.
#pragma once
#include <cstddef>

#include "engine/tensor/copy.h"
#include "engine/tensor/runtime.h"
#include "tools/bench/measure.h"

namespace masquerade {

// Seconds of one call: the mean of as many as fill `budget`, after one that is not counted. A GPU is waited
// for after several: it would be idle between calls.
template <class Work>
double mean_seconds(double budget, Device device, Work work) {
    const int together = device == Device::cpu ? 1 : 8;
    work();
    wait_for(device);
    const double start = steady_seconds();
    double now = start;
    int times = 0;
    for (; times == 0 || now - start < budget; times += together, now = steady_seconds()) {
        for (int i = 0; i < together; i++) work();
        wait_for(device);
    }
    return (now - start) / times;
}

// Counts the memory of Device::cuda that is allocated while it lives, by standing before its runtime; one at
// a time. What the CUDA library takes for itself, the working memory of its ops and of cuBLASLt, is not seen.
class DeviceMemoryMeter {
  public:
    DeviceMemoryMeter();
    ~DeviceMemoryMeter();
    DeviceMemoryMeter(const DeviceMemoryMeter&) = delete;
    std::size_t peak_bytes() const;

  private:
    const DeviceRuntime* runtime_;
    DeviceRuntime counting_;
};

}  // namespace masquerade

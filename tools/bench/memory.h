// SPDX-License-Identifier: MIT
// Memory: what a process and a device take, work done in a process of its own, and files that are in no folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/base/memory.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

void forget_peak();           // peak_resident_bytes() is then the most from here on
std::int64_t minor_faults();  // page faults of all threads, since the start

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

// A file in memory that other processes can open by its path while it lives.
class SharedFile {
  public:
    explicit SharedFile(std::string_view bytes);
    ~SharedFile();
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;

    std::string path() const;
    std::string read() const;  // what it holds by now
    void append(std::string_view bytes);

  private:
    int file_;
};

// Runs work() in a child process and returns what it gave, so that one measurement does not find the memory of another; an
// exception there is one here, an Error. A request to stop reaches the child once, as SIGINT: what it gives then is still
// returned. No threads may have been started.
nlohmann::ordered_json in_own_process(const std::function<nlohmann::ordered_json()>& work);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// Tables that the host writes for kernels. In the tests' build they are plain memory.
#pragma once
#include <cstddef>

#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::DEVICE {

#ifdef __CUDACC__
// write() gives memory of the host to fill, send() puts it onto the GPU, after what is on the stream, without waiting:
// the memory is pinned, and the next write() waits until the last send() has read it, which is long past.
class Upload {
  public:
    char* write(std::size_t bytes) {
        if (sent_) check(cudaEventSynchronize(sent_), "waiting for a table to be sent");
        bytes_ = bytes;
        if (bytes > size_) {
            if (from_) check(cudaFreeHost(from_), "releasing pinned memory");
            from_ = nullptr;
            size_ = 0;
            check(cudaMallocHost(&from_, bytes + bytes / 2),
                  text("taking ", bytes + bytes / 2, " bytes of pinned memory"));
            size_ = bytes + bytes / 2;
        }
        return from_;
    }
    const char* send() {
        char* to = static_cast<char*>(memory_.reserve(bytes_));
        if (!sent_) check(cudaEventCreateWithFlags(&sent_, cudaEventDisableTiming), "making an event");
        check(cudaMemcpyAsync(to, from_, bytes_, cudaMemcpyHostToDevice, cuda_stream()), "sending a table");
        check(cudaEventRecord(sent_, cuda_stream()), "recording an event");
        return to;
    }

  private:
    char* from_ = nullptr;
    std::size_t size_ = 0, bytes_ = 0;
    cudaEvent_t sent_ = nullptr;
    Workspace memory_;
};
#else
class Upload {
  public:
    char* write(std::size_t bytes) { return data_ = static_cast<char*>(memory_.reserve(bytes)); }
    const char* send() { return data_; }

  private:
    char* data_ = nullptr;
    Workspace memory_;
};
#endif

}  // namespace masquerade::DEVICE

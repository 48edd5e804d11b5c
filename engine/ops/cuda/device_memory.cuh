// SPDX-License-Identifier: MIT
// Memory that an op keeps from call to call: tables that the host writes for kernels, and what one kernel leaves for the
// next. Both only grow. In the tests' build they are plain memory.
#pragma once
#include <cstddef>
#include <vector>

#include "engine/ops/cuda/kernel.cuh"

namespace masquerade::DEVICE {

#ifdef __CUDACC__
// On the GPU; for what is on the stream already the old memory stays until that is done, as cudaFree waits.
class Scratch {
  public:
    char* at_least(std::size_t bytes) {
        if (bytes <= size_) return data_;
        if (data_) check(cudaFree(data_), "to free memory of an op");
        data_ = nullptr;
        size_ = 0;
        check(cudaMalloc(&data_, bytes + bytes / 2), text(bytes + bytes / 2, " bytes for an op"));
        size_ = bytes + bytes / 2;
        return data_;
    }

  private:
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

// write() gives memory of the host to fill, send() puts it onto the GPU, after what is on the stream, without waiting:
// the memory is pinned, and the next write() waits until the last send() has read it, which is long past.
class Upload {
  public:
    char* write(std::size_t bytes) {
        if (sent_) check(cudaEventSynchronize(sent_), "to wait for a table to be sent");
        bytes_ = bytes;
        if (bytes > size_) {
            if (from_) check(cudaFreeHost(from_), "to free pinned memory");
            from_ = nullptr;
            size_ = 0;
            check(cudaMallocHost(&from_, bytes + bytes / 2),
                  text(bytes + bytes / 2, " bytes of pinned memory"));
            size_ = bytes + bytes / 2;
        }
        return from_;
    }
    const char* send() {
        char* to = memory_.at_least(bytes_);
        if (!sent_) check(cudaEventCreateWithFlags(&sent_, cudaEventDisableTiming), "an event");
        check(cudaMemcpyAsync(to, from_, bytes_, cudaMemcpyHostToDevice, cuda_stream()), "to send a table");
        check(cudaEventRecord(sent_, cuda_stream()), "to record an event");
        return to;
    }

  private:
    char* from_ = nullptr;
    std::size_t size_ = 0, bytes_ = 0;
    cudaEvent_t sent_ = nullptr;
    Scratch memory_;
};
#else
class Scratch {
  public:
    char* at_least(std::size_t bytes) {
        if (bytes > data_.size() * sizeof(std::max_align_t))
            data_.resize(bytes / sizeof(std::max_align_t) + 1);
        return reinterpret_cast<char*>(data_.data());
    }

  private:
    std::vector<std::max_align_t> data_;
};
class Upload {
  public:
    char* write(std::size_t bytes) { return memory_.at_least(bytes); }
    const char* send() { return memory_.at_least(0); }

  private:
    Scratch memory_;
};
#endif

}  // namespace masquerade::DEVICE

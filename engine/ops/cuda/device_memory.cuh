// SPDX-License-Identifier: MIT
// Tables that the host writes and kernels read. In the tests' build they are plain memory.
#pragma once
#include <cstddef>
#ifndef __CUDACC__
#include <vector>
#endif

#ifdef __CUDACC__
#include "engine/ops/cuda/capture.h"
#endif
#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::DEVICE {

#ifdef __CUDACC__
// write() returns host memory to fill; send() copies it to the GPU, after the work on the stream, without waiting.
class Upload {
  public:
    char* write(std::size_t bytes) {
        bytes_ = bytes;
        return from_ = static_cast<char*>(stage(bytes));
    }
    const char* send() {
        char* to = static_cast<char*>(memory_.reserve(bytes_));
        if (bytes_ > 0)
            check(cudaMemcpyAsync(to, from_, bytes_, cudaMemcpyHostToDevice, cuda_stream()), "sending a table");
        return to;
    }

  private:
    char* from_ = nullptr;
    std::size_t bytes_ = 0;
    Workspace memory_;
};
#else
// The tests imitate captures: when one begins, all earlier uploads are erased, because a captured step sends its own.
inline std::uint64_t captures = 0;
inline std::uint64_t capture_number() { return captures; }
class Upload;
inline std::vector<Upload*> uploads;  // those with memory; they live as long as the program
class Upload {
  public:
    char* write(std::size_t bytes) {
        if (!data_) uploads.push_back(this);
        bytes_ = bytes;
        return data_ = static_cast<char*>(memory_.reserve(bytes));
    }
    const char* send() { return data_; }
    void lose() { std::memset(data_, 0, bytes_); }

  private:
    char* data_ = nullptr;
    std::size_t bytes_ = 0;
    Workspace memory_;
};
inline void begin_capture_of_tests() {
    captures++;
    for (Upload* one : uploads) one->lose();
}
#endif

}  // namespace masquerade::DEVICE

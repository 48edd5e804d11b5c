// SPDX-License-Identifier: MIT
// Tables that the host writes and kernels read. When the tests run kernels on the CPU, the tables are in ordinary
// host memory.
#pragma once
#include <cstddef>
#ifndef __CUDACC__
#include <vector>
#endif

#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::DEVICE {

#ifdef __CUDACC__
// A table that is copied to the GPU. write() returns host memory, which the caller fills. send() then requests the
// copy, which runs after all earlier work on the stream. During the capture of a CUDA graph, send() requests no copy,
// because launch_graph() copies everything that was staged (stage()). send() returns the address of the table in GPU
// memory, and does not wait.
class Upload {
  public:
    char* write(std::size_t bytes) {
        bytes_ = bytes;
        staged_ = stage(bytes);
        return staged_.here;
    }
    const char* send() {
        if (staged_.there) return staged_.there;
        char* to = static_cast<char*>(memory_.reserve(bytes_));
        if (bytes_ > 0)
            check(cudaMemcpyAsync(to, staged_.here, bytes_, cudaMemcpyHostToDevice, cuda_stream()), "sending a table");
        return to;
    }

  private:
    Staged staged_;
    std::size_t bytes_ = 0;
    Workspace memory_;
};
#else
// The tests, which run kernels on the CPU, imitate the capture of a step as a CUDA graph. begin_capture_of_tests() adds
// 1 to `captures` and overwrites all uploaded tables with zeros. A step that uses a table from before the capture then
// fails, as it must, because a captured step must send its own tables.
inline std::uint64_t captures = 0;
inline std::uint64_t capture_number() { return captures; }
class Upload;
inline std::vector<Upload*> uploads;  // all uploads that have memory; no Upload is destroyed before the program ends
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

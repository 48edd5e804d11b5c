// SPDX-License-Identifier: MIT
// The functions of an accelerator (GPU) besides the ops: memory, copies, timing and graphs. The CUDA library provides
// a DeviceRuntime (engine/ops/library.h). All other code uses the device through the DeviceRuntime and does not depend
// on CUDA.
//
// Ops, copies and fills all run on one stream, in the order of the calls. Failures are thrown as Error. On a GPU, a
// later call may report the failure of a kernel, because kernels run asynchronously.
#pragma once
#include <cstddef>

#include "engine/base/error.h"

namespace masquerade {

// Thrown while a step is captured if an op, or a copy to the device, needs more working memory than before. Memory must
// not be allocated during a capture, so the capture must be abandoned; outside a capture, the same call gets its
// memory.
struct OutgrownInCapture : Error {
    using Error::Error;
};

// The number of available devices and, if the number is 0, the reason why there are none.
struct Answer {
    int devices = 0;
    const char* reason = "";
};

struct DeviceFacts {
    char name[64] = "";            // such as "NVIDIA H200"
    char uuid[16] = {};            // different for each device in the world
    int major = 0, minor = 0;      // compute capability
    std::size_t bytes = 0;         // total memory of the device
    std::size_t bytes_free = 0;    // memory of the device that is free now
    std::size_t bytes_of_ops = 0;  // size of the ops' workspaces, including cuBLASLt's; they are never freed
};

// Settings for matrix products on the device, including those of attention.
struct ProductRule {
    // If true, cuBLASLt rounds the f32 elements of both matrices to TF32, which has 10 fraction bits, before it
    // multiplies. Faster, but less exact.
    bool tf32 = false;
    // If true, kernels of the engine compute every product. The bits of an element of the product then depend only on
    // the row and the column that are multiplied. In attention, all tiles have the same size. A document therefore has
    // the same results in every batch. If false, cuBLASLt computes products, and the last bits may change with the
    // shapes of the matrices; those of attention may change with the lengths of the query segments in the batch.
    bool deterministic = false;
};

enum class Way : int { to_device, from_device, within_device };

struct DeviceEvent;  // a point in the stream's sequence of work, used to measure time
struct DeviceRead;   // a copy from the device that was requested and may still be under way

struct DeviceRuntime {
    // Counts the devices that can be used, and chooses device `wanted`, modulo their number, for all other functions
    // and the ops. Never throws.
    Answer (*answer)(int wanted) = nullptr;
    DeviceFacts (*facts)() = nullptr;  // describes the chosen device
    // Allocates device memory. Returns null if the device has too little memory.
    void* (*allocate)(std::size_t bytes) = nullptr;
    void (*release)(void* data) noexcept = nullptr;
    // When copy() returns, the caller may change the memory at `from`. A copy from the device is then complete; a
    // copy to the device may still be under way.
    void (*copy)(void* to, const void* from, std::size_t bytes, Way way) = nullptr;
    void (*fill)(void* to, int byte, std::size_t bytes) = nullptr;
    // begin_read() requests a copy from the device and does not wait. finish_read() waits until this copy has arrived,
    // but not for work that was requested later, and stores the bytes at `to`. If `to` is null, finish_read() discards
    // the copy; it then neither waits nor throws.
    DeviceRead* (*begin_read)(const void* from, std::size_t bytes) = nullptr;
    void (*finish_read)(DeviceRead* read, void* to) = nullptr;
    // Requests all additions that ops have left for later (Grad::late). If `gradient` is not null, does so only if one
    // of them is for numbers at this address.
    void (*add_late_sums)(const void* gradient) = nullptr;
    // Forgets these additions. Called when a step begins, because the backward of the step before may have failed.
    void (*forget_late_sums)() noexcept = nullptr;
    // Waits until the device has finished all work requested so far.
    void (*synchronise)() = nullptr;
    // Measures time on the device: call note_moment() before and after the work. seconds_between() waits until the
    // work before the second moment is finished. forget_moment() frees a moment.
    DeviceEvent* (*note_moment)() = nullptr;
    double (*seconds_between)(DeviceEvent* from, DeviceEvent* to) = nullptr;
    void (*forget_moment)(DeviceEvent* event) noexcept = nullptr;
    // Captures a step of training or decoding as one CUDA graph (engine/tape/rehearsal.h). After begin_graph(), ops,
    // fills and copies to the device are recorded in order but not executed. Copies from the device, and waiting for
    // the device, then throw Error, and ops may throw OutgrownInCapture. launch_graph() combines all copies to the
    // device into one, sends this copy, starts the recorded work, and returns without waiting. If an earlier graph had
    // an equal `name`, launch_graph() updates that graph, which is faster than making a new one.
    void (*begin_graph)() = nullptr;
    void (*launch_graph)(const char* name) = nullptr;
    // Adds the bytes at `from` to the copy that launch_graph() sends, and returns the device address at which the
    // recorded work finds the bytes. Unlike copy(), it records no work. Returns null if no step is being captured.
    const void* (*send_with_graph)(const void* from, std::size_t bytes) = nullptr;
    void (*abandon_graph)() noexcept = nullptr;  // ends the capture without a launch; discards the recorded work
    // Sets the ProductRule of all matrix products from now on.
    void (*choose_products)(ProductRule rule) = nullptr;
    // Opens cuBLASLt at the first call. Returns "" if cuBLASLt can be used. Otherwise returns the reason in one line,
    // and kernels of the engine compute all products.
    const char* (*why_no_cublas)() = nullptr;
    // For libraries that work on the device, such as NCCL: the stream of the ops (for CUDA, a cudaStream_t), and
    // whether the device has finished all work requested so far. finished() does not wait.
    void* (*stream)() = nullptr;
    bool (*finished)() = nullptr;
};

// Returns the runtime of Device::cuda. Throws Error if no CUDA library is in use.
const DeviceRuntime& cuda_runtime();
bool has_cuda_runtime();
// Sets the runtime of Device::cuda; null means that no CUDA library is in use. Called by use_cuda_library() and by
// engine/tape/rehearsal.cpp, which replaces the runtime while a step runs only to plan its memory. Before the runtime
// of another library is set, all device memory must be released.
void set_cuda_runtime(const DeviceRuntime* runtime);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The services of an accelerator besides ops: its memory, copies, time. The CUDA library hands over one such runtime
// (engine/ops/library.h); everything above reaches the device through the runtime and knows no CUDA.
//
// All work of ops, copies and fills goes onto one stream, in the order of the calls. What goes wrong is thrown as
// Error; on a GPU the fault of a kernel may appear in any later call.
#pragma once
#include <cstddef>

namespace masquerade {

// How many devices answer, and where none does, why.
struct Answer {
    int devices = 0;
    const char* reason = "";
};

struct DeviceFacts {
    char name[64] = "";            // "NVIDIA H200"
    int major = 0, minor = 0;      // compute capability
    std::size_t bytes = 0;         // of memory
    std::size_t bytes_free = 0;    // of them at present
    std::size_t bytes_of_ops = 0;  // taken by ops to work in, cuBLASLt's included; kept until the program ends
};

// How matrix products are made on the device.
struct ProductRule {
    // cuBLASLt rounds factors of f32 to TF32, ten bits behind the point, before it multiplies them.
    bool tf32 = false;
    // Every product is made by the engine's own kernels, whose bits depend on the row, the column and K alone: a
    // document has the same bits alone and in any batch. Otherwise cuBLASLt multiplies, whose bits may change with the
    // shape.
    bool deterministic = false;
};

enum class Way : int { to_device, from_device, within_device };

struct DeviceEvent;  // a moment on the stream

struct DeviceRuntime {
    Answer (*answer)() = nullptr;      // never throws; takes no memory on the device
    DeviceFacts (*facts)() = nullptr;  // of the first device, which is the one that is used
    // Null where the device does not have so much.
    void* (*allocate)(std::size_t bytes) = nullptr;
    void (*release)(void* data) noexcept = nullptr;
    // On return the caller's memory is free again, a copy to the device may be under way, one from it has ended.
    void (*copy)(void* to, const void* from, std::size_t bytes, Way way) = nullptr;
    void (*fill)(void* to, int byte, std::size_t bytes) = nullptr;
    // Waits for all that was asked for so far.
    void (*synchronise)() = nullptr;
    // Time on the device: note a moment before and after the work; seconds_between waits for the second.
    DeviceEvent* (*note_moment)() = nullptr;
    double (*seconds_between)(DeviceEvent* from, DeviceEvent* to) = nullptr;
    void (*forget_moment)(DeviceEvent* event) noexcept = nullptr;
    // A step as one graph (tape/rehearsal.h): after begin_graph ops, fills and copies to the device are kept in their
    // order, not done; launch_graph does them, without waiting. Steps of one `name` are much alike, and what was made
    // ready for one serves the next. Nothing can be read back or waited for between the two: an Error.
    void (*begin_graph)() = nullptr;
    void (*launch_graph)(const char* name) = nullptr;
    void (*abandon_graph)() noexcept = nullptr;  // what was kept is dropped
    // From now on products are made so.
    void (*choose_products)(ProductRule rule) = nullptr;
    // Opens cuBLASLt. "" if it multiplies from now on; otherwise the reason why not, in one line: then the engine's own
    // kernels make all products.
    const char* (*why_no_cublas)() = nullptr;
};

// The runtime of Device::cuda; an Error where no library is in use.
const DeviceRuntime& cuda_runtime();
bool has_cuda_runtime();
// Called by use_cuda_library; null: none. Device memory must not outlive its runtime.
void set_cuda_runtime(const DeviceRuntime* runtime);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The functions of an accelerator other than ops: memory, copies, timing, graphs. The CUDA library provides one runtime
// (engine/ops/library.h). All other code uses the device through the runtime and does not depend on CUDA.
//
// Ops, copies and fills all run on one stream, in the order of the calls. Failures are thrown as Error; on a GPU, the
// failure of a kernel may be reported by any later call.
#pragma once
#include <cstddef>

namespace masquerade {

// The number of available devices and, if there are none, the reason.
struct Answer {
    int devices = 0;
    const char* reason = "";
};

struct DeviceFacts {
    char name[64] = "";            // "NVIDIA H200"
    int major = 0, minor = 0;      // compute capability
    std::size_t bytes = 0;         // memory in bytes
    std::size_t bytes_free = 0;    // free memory at present
    std::size_t bytes_of_ops = 0;  // workspaces of ops, including cuBLASLt's; kept until the program ends
};

// How matrix products are computed on the device.
struct ProductRule {
    // cuBLASLt rounds f32 factors to TF32, which has 10 fraction bits, before it multiplies them.
    bool tf32 = false;
    // If true, the engine's own kernels compute every product. The bits of an element depend only on its row and its
    // column of the factors, so a document has the same bits alone and in any batch. If false, cuBLASLt computes
    // products, and bits may change with the shape.
    bool deterministic = false;
};

enum class Way : int { to_device, from_device, within_device };

struct DeviceEvent;  // a point in time on the stream

struct DeviceRuntime {
    Answer (*answer)() = nullptr;      // never throws; allocates no device memory
    DeviceFacts (*facts)() = nullptr;  // facts of the first device, which is the one used
    // Returns null if the device has too little memory.
    void* (*allocate)(std::size_t bytes) = nullptr;
    void (*release)(void* data) noexcept = nullptr;
    // When this returns, the caller may reuse its memory. A copy to the device may still be under way; a copy from it
    // is done.
    void (*copy)(void* to, const void* from, std::size_t bytes, Way way) = nullptr;
    void (*fill)(void* to, int byte, std::size_t bytes) = nullptr;
    // Waits for all work requested so far.
    void (*synchronise)() = nullptr;
    // Time on the device: call note_moment() before and after the work. seconds_between() waits for the second moment.
    DeviceEvent* (*note_moment)() = nullptr;
    double (*seconds_between)(DeviceEvent* from, DeviceEvent* to) = nullptr;
    void (*forget_moment)(DeviceEvent* event) noexcept = nullptr;
    // Captures a step as one graph (tape/rehearsal.h). After begin_graph(), ops, fills and copies to the device are not
    // executed but recorded in order; launch_graph() launches them without waiting. Steps with equal `name` are
    // similar, so the graph of one step is reused for the next. Between the two calls, reading from the device or
    // waiting for it is an Error.
    void (*begin_graph)() = nullptr;
    void (*launch_graph)(const char* name) = nullptr;
    void (*abandon_graph)() noexcept = nullptr;  // discards what was recorded
    // Sets the rule for all products from now on.
    void (*choose_products)(ProductRule rule) = nullptr;
    // Opens cuBLASLt. Returns "" if it computes products from now on; otherwise one line with the reason, and the
    // engine's own kernels compute all products.
    const char* (*why_no_cublas)() = nullptr;
};

// The runtime of Device::cuda. Error if no CUDA library is in use.
const DeviceRuntime& cuda_runtime();
bool has_cuda_runtime();
// Called by use_cuda_library(). Null if no library is in use. Device memory must not outlive its runtime.
void set_cuda_runtime(const DeviceRuntime* runtime);

}  // namespace masquerade

// SPDX-License-Identifier: MIT
// The DeviceRuntime of the CUDA library: memory, copies and timing of the first GPU, on the stream of the ops.
#include "engine/ops/cuda/runtime.h"

#include <cstdio>
#include <cstring>

#include "engine/ops/cuda/capture.h"
#include "engine/ops/cuda/kernel.cuh"
#include "engine/ops/cuda/multiply.h"
#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::cuda {
namespace {

// CUDA's default stream waits for other streams and cannot be captured as a graph. The ops therefore have their own
// stream, which is created when memory is first allocated.
cudaStream_t stream() {
    static const cudaStream_t own = [] {
        cudaStream_t made = nullptr;
        check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
        return cuda_stream() = made;
    }();
    return own;
}

// An empty kernel. answer() asks CUDA for the attributes of this kernel. The request fails if the library has no code
// for the GPU's architecture.
__global__ void probe() {}

Answer answer() {
    Answer found;  // found.devices is 0; if there is no driver, CUDA does not change it
    cudaError_t status = cudaGetDeviceCount(&found.devices);
    cudaFuncAttributes attributes;
    if (status == cudaSuccess && found.devices > 0) status = cudaFuncGetAttributes(&attributes, probe);
    if (status != cudaSuccess) {
        cudaGetLastError();
        int driver = 0;
        cudaDriverGetVersion(&driver);
        found = {0, driver == 0 ? "there is no NVIDIA driver" : cudaGetErrorString(status)};
    } else if (found.devices == 0) {
        found.reason = "CUDA finds none";
    }
    return found;
}

DeviceFacts facts() {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "asking what the GPU is");
    DeviceFacts facts;
    std::snprintf(facts.name, sizeof facts.name, "%.63s", properties.name);
    facts.major = properties.major;
    facts.minor = properties.minor;
    check(cudaMemGetInfo(&facts.bytes_free, &facts.bytes), "asking for the GPU's memory");
    facts.bytes_of_ops = bytes_of_workspaces();
    return facts;
}

void* allocate(std::size_t bytes) {
    stream();
    void* data = nullptr;
    cudaError_t status = cudaMalloc(&data, bytes > 0 ? bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return nullptr;
    }
    check(status, "allocating memory");
    return data;
}

// release() need not wait, because cudaFree() itself waits for work that may still use the memory.
void release(void* data) noexcept { cudaFree(data); }

// Waits for all work on the stream. Throws Error while a CUDA graph is captured, because the captured work has not been
// launched yet, so waiting for it would be useless.
void wait(const char* for_what) {
    if (capturing()) throw Error("CUDA: ", for_what, " while a step is captured as a graph; launch it first");
    check(cudaStreamSynchronize(stream()), "work before ", for_what);
    forget_staged();
}

// A copy to the GPU of up to this many bytes goes through pinned memory, and the host does not wait for the copy.
// While a CUDA graph is captured, every copy to the GPU goes through pinned memory, whatever its size.
constexpr std::size_t most_staged = std::size_t(1) << 20;

void copy(void* to, const void* from, std::size_t bytes, Way way) {
    if (bytes == 0) return;  // a CUDA graph must not contain an empty copy or fill
    if (way == Way::to_device && (capturing() || bytes <= most_staged)) {
        from = std::memcpy(stage(bytes), from, bytes);
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "copying to the GPU");
        return;
    }
    const cudaMemcpyKind kind = way == Way::to_device     ? cudaMemcpyHostToDevice
                                : way == Way::from_device ? cudaMemcpyDeviceToHost
                                                          : cudaMemcpyDeviceToDevice;
    if (way == Way::from_device && capturing()) wait("reading back");
    check(cudaMemcpyAsync(to, from, bytes, kind, stream()), "copying");
    if (way != Way::within_device) wait("the end of a copy");
}

void fill(void* to, int byte, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemsetAsync(to, byte, bytes, stream()), "filling");
}

void synchronise() { wait("going on"); }

cudaEvent_t event_of(DeviceEvent* event) { return reinterpret_cast<cudaEvent_t>(event); }

DeviceEvent* note_moment() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "making an event");
    cudaError_t status = cudaEventRecord(event, stream());
    if (status != cudaSuccess) cudaEventDestroy(event);
    check(status, "recording an event");
    return reinterpret_cast<DeviceEvent*>(event);
}

double seconds_between(DeviceEvent* from, DeviceEvent* to) {
    float milliseconds = 0;
    check(cudaEventSynchronize(event_of(to)), "work before an event");
    check(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)), "reading the time between two events");
    return 1e-3 * double(milliseconds);
}

void forget_moment(DeviceEvent* event) noexcept { cudaEventDestroy(event_of(event)); }

}  // namespace

DeviceRuntime runtime() {
    return {answer,      facts,        allocate,      release,         copy,
            fill,        synchronise,  note_moment,   seconds_between, forget_moment,
            begin_graph, launch_graph, abandon_graph, choose_products, why_no_cublas};
}

}  // namespace masquerade::cuda

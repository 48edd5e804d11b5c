// SPDX-License-Identifier: MIT
// The DeviceRuntime of the CUDA library: memory, copies and timing of one GPU, on the stream of the ops.
#include "engine/ops/cuda/runtime.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/ops/cuda/capture.h"
#include "engine/ops/cuda/chunks.cuh"
#include "engine/ops/cuda/kernel.cuh"
#include "engine/ops/cuda/multiply.h"
#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::cuda {
namespace {

// CUDA's default stream waits for other streams and cannot be captured as a graph. The ops therefore have their own
// stream, which is created when memory is first allocated.
cudaStream_t stream() {
    if (!gpu().stream) {
        use_gpu();
        check(cudaStreamCreateWithFlags(&gpu().stream, cudaStreamNonBlocking), "making a stream");
    }
    return cuda_stream();
}

// An empty kernel. answer() asks CUDA for the attributes of this kernel. The request fails if the library has no code
// for the GPU's architecture.
__global__ void probe() {}

Answer answer(int wanted) {
    Answer found;  // found.devices is 0; if there is no driver, CUDA does not change it
    cudaError_t status = cudaGetDeviceCount(&found.devices);
    cudaFuncAttributes attributes;
    if (status == cudaSuccess && found.devices > 0) {
        gpu().number = wanted % found.devices;
        status = cudaSetDevice(gpu().number);
    }
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
    use_gpu();
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, gpu().number), "asking what the GPU is");
    DeviceFacts facts;
    std::snprintf(facts.name, sizeof facts.name, "%.63s", properties.name);
    static_assert(sizeof facts.uuid == sizeof properties.uuid);
    std::memcpy(facts.uuid, &properties.uuid, sizeof facts.uuid);
    facts.major = properties.major;
    facts.minor = properties.minor;
    check(cudaMemGetInfo(&facts.bytes_free, &facts.bytes), "asking for the GPU's memory");
    facts.bytes_of_ops = bytes_of_workspaces();
    return facts;
}

void* allocate(std::size_t bytes) {
    if (capturing())
        throw Error("CUDA: a tensor of ", bytes,
                    " bytes is allocated while a step is captured; plan its memory before");
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

// release() need not wait, because cudaFree() itself waits for work that may still use the memory. release() must not
// throw, so a failure is reported later.
void release(void* data) noexcept { report_later(cudaFree(data), "releasing memory"); }

// Waits for all work on the stream. Throws Error while a CUDA graph is captured, because the captured work has not been
// launched yet, so waiting for it would be useless.
void wait(const char* for_what) {
    if (capturing()) throw Error("CUDA: ", for_what, " while a step is captured as a graph; launch it first");
    check(cudaStreamSynchronize(stream()), "work before ", for_what);
    report();
}

// A copy to the GPU of up to this many bytes goes through pinned memory, and the host does not wait for the copy.
// During a capture, every copy to the GPU goes through pinned memory, whatever its size; the graph then copies the
// bytes from where launch_graph() has sent them.
constexpr std::size_t most_staged = std::size_t(1) << 20;

Staged staged(const void* from, std::size_t bytes) {
    const Staged at = stage(bytes);
    std::memcpy(at.here, from, bytes);
    return at;
}

void copy(void* to, const void* from, std::size_t bytes, Way way) {
    if (bytes == 0) return;  // a CUDA graph must not contain an empty copy or fill
    if (way == Way::to_device && (capturing() || bytes <= most_staged)) {
        const Staged at = staged(from, bytes);
        if (at.there)
            check(cudaMemcpyAsync(to, at.there, bytes, cudaMemcpyDeviceToDevice, stream()), "copying what was sent");
        else
            check(cudaMemcpyAsync(to, at.here, bytes, cudaMemcpyHostToDevice, stream()), "copying to the GPU");
        return;
    }
    const cudaMemcpyKind kind = way == Way::to_device     ? cudaMemcpyHostToDevice
                                : way == Way::from_device ? cudaMemcpyDeviceToHost
                                                          : cudaMemcpyDeviceToDevice;
    if (way == Way::from_device && capturing()) wait("reading back");
    check(cudaMemcpyAsync(to, from, bytes, kind, stream()), "copying");
    if (way != Way::within_device) wait("the end of a copy");
}

const void* send_with_graph(const void* from, std::size_t bytes) {
    return capturing() ? staged(from, bytes).there : nullptr;
}

// A copy from the GPU that the host waits for later. Pinned memory takes long to allocate, so finish_read() puts the
// PinnedRead into unused_reads, and a later begin_read() uses its memory again. If finish_read() has discarded the
// copy, the copy may still be under way at that time. The next copy into the same memory runs after it, because both
// are on one stream.
struct PinnedRead {
    char* data = nullptr;
    std::size_t bytes = 0, capacity = 0;
    cudaEvent_t arrived = nullptr;
};
std::vector<PinnedRead*> unused_reads;

PinnedRead* read_of(DeviceRead* read) { return reinterpret_cast<PinnedRead*>(read); }

DeviceRead* begin_read(const void* from, std::size_t bytes) {
    if (capturing()) wait("reading back");
    use_gpu();
    if (unused_reads.empty()) {
        auto made = std::make_unique<PinnedRead>();
        check(cudaEventCreateWithFlags(&made->arrived, cudaEventDisableTiming), "making an event");
        unused_reads.push_back(made.release());
    }
    PinnedRead* const read = unused_reads.back();
    if (read->capacity < bytes) {
        if (read->data) {
            check(cudaEventSynchronize(read->arrived), "work before reading back");
            check(cudaFreeHost(read->data), "releasing pinned memory");
            read->data = nullptr, read->capacity = 0;
        }
        const std::size_t page = (bytes + 4095) / 4096 * 4096;
        check(cudaMallocHost(&read->data, page), "taking ", page, " bytes of pinned memory");
        read->capacity = page;
    }
    read->bytes = bytes;
    check(cudaMemcpyAsync(read->data, from, bytes, cudaMemcpyDeviceToHost, stream()), "reading back");
    check(cudaEventRecord(read->arrived, stream()), "recording an event");
    unused_reads.pop_back();
    return reinterpret_cast<DeviceRead*>(read);
}

void finish_read(DeviceRead* read, void* to) {
    unused_reads.push_back(read_of(read));
    if (!to) return;
    check(cudaEventSynchronize(read_of(read)->arrived), "work before reading back");
    std::memcpy(to, read_of(read)->data, read_of(read)->bytes);
    report();
}

void fill(void* to, int byte, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemsetAsync(to, byte, bytes, stream()), "filling");
}

void synchronise() { wait("going on"); }

bool finished() {
    const cudaError_t status = cudaStreamQuery(stream());
    if (status == cudaErrorNotReady) return false;
    check(status, "work before asking whether it is finished");
    report();
    return true;
}

cudaEvent_t event_of(DeviceEvent* event) { return reinterpret_cast<cudaEvent_t>(event); }

DeviceEvent* note_moment() {
    use_gpu();
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

void forget_moment(DeviceEvent* event) noexcept {
    report_later(cudaEventDestroy(event_of(event)), "destroying an event");
}

}  // namespace

DeviceRuntime runtime() {
    return {answer,
            facts,
            allocate,
            release,
            copy,
            fill,
            begin_read,
            finish_read,
            add_late_sums,
            forget_late_sums,
            synchronise,
            note_moment,
            seconds_between,
            forget_moment,
            begin_graph,
            launch_graph,
            send_with_graph,
            abandon_graph,
            choose_products,
            why_no_cublas,
            [] { return static_cast<void*>(stream()); },
            finished};
}

}  // namespace masquerade::cuda

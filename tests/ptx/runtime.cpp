// SPDX-License-Identifier: MIT
// A stand-in for CUDA's runtime, with the functions that engine/ops/cuda calls. The device's memory is memory of the
// host. Launches run translated PTX on fibers, one after the other, and a captured graph is a list of the submitted
// work. Work is done as late as CUDA allows: when the host waits for it or frees memory. If the host overwrites memory
// before an earlier copy from it has been made, the wrong bytes are therefore copied. The stand-in
// complains, which ends the test, if the host does something that would work here, but that CUDA's manual forbids: it
// uses the default stream, waits during a capture, captures a copy from memory that is not pinned, or uses the stream
// in a thread whose GPU is another one. PTX_DEVICES is the number of GPUs that answer (1); they share one memory.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "tests/ptx/kernels.h"
#include "tests/ptx/stream.h"
#undef cudaGetDeviceProperties

using namespace masquerade::ptx;

namespace {

using Work = std::function<std::string()>;
using Graph = std::deque<Work>;

struct Function {
    std::string name;
    std::size_t most_dynamic = 48 << 10;  // bytes of shared memory
};
struct Pushed {
    dim3 blocks, threads;
    std::size_t shared;
    void* stream;
};

std::map<const void*, Function>& functions() {  // by the address of the host's stub; filled before main()
    static std::map<const void*, Function> all;
    return all;
}
std::vector<Pushed> pushed;  // configurations <<<...>>> of launches that have not begun
std::map<const char*, std::size_t> pinned, device;
Graph* captured = nullptr;
std::string fault;  // fault of the first launch that failed; later calls then fail, too
cudaError_t last = cudaSuccess;

cudaError_t result(cudaError_t status) {
    if (status == cudaSuccess && !fault.empty()) status = cudaErrorIllegalAddress;
    if (status != cudaSuccess) last = status;
    return status;
}
bool holds(const std::map<const char*, std::size_t>& blocks, const void* at, std::size_t bytes) {
    auto after = blocks.upper_bound(static_cast<const char*>(at));
    if (after == blocks.begin()) return false;
    --after;
    return static_cast<const char*>(at) + bytes <= after->first + after->second;
}
thread_local int gpu = 0;  // as in CUDA, every thread begins with GPU 0
int gpu_of_stream = -1;    // -1: there is no stream

void expect_gpu(const char* what) {
    if (gpu_of_stream >= 0 && gpu != gpu_of_stream)
        complain(std::string(what) + " in a thread that uses GPU " + std::to_string(gpu) +
                 "; the stream belongs to GPU " + std::to_string(gpu_of_stream));
}
void expect_stream(cudaStream_t stream, const char* what) {
    if (!stream) complain(std::string(what) + " on the default stream");
    expect_gpu(what);
}

std::deque<Work> requested;  // work that is requested and not yet done
std::uint64_t done = 0;      // pieces of work that are done
StreamCounts counts;

// Does requested work until `count` pieces of work have been done since the start of the program.
void wait_until(std::uint64_t count) {
    const bool waits = done < count;
    for (; done < count; done++) {
        if (fault.empty()) fault = requested.front()();
        requested.pop_front();
    }
    if (waits && requested.empty()) counts.idle++;
}
void wait_for_all() { wait_until(done + requested.size()); }

struct Event {
    double moment = 0;
    std::uint64_t after = 0;  // wait_until(after) waits for the event
};
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

}  // namespace

namespace masquerade::ptx {

void complain(const std::string& what) {
    std::fprintf(stderr, "complaint: %s\n", what.c_str());
    std::abort();
}
void submit(Work work) { (captured ? *captured : requested).push_back(std::move(work)); }
void submit_launch(Work work) {
    if (!captured) counts.launches++;
    submit(std::move(work));
}

}  // namespace masquerade::ptx

extern "C" {

// ---- functions that host code of nvcc calls -------------------------------------------------------------------------
void** __cudaRegisterFatBinary(void*) {
    static void* all;
    return &all;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    functions()[stub] = {name};
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 0; }
unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, std::size_t shared, void* stream) {
    pushed.push_back({blocks, threads, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads, std::size_t* shared, void* stream) {
    const Pushed p = pushed.back();
    pushed.pop_back();
    *blocks = p.blocks, *threads = p.threads, *shared = p.shared, *static_cast<void**>(stream) = p.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t stub, dim3 blocks, dim3 threads, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
    const auto found = functions().find(reinterpret_cast<const void*>(stub));
    Kernel* kernel = found == functions().end() ? nullptr : find_kernel(found->second.name);
    if (!kernel) complain("no translated kernel " + (found == functions().end() ? "of this stub" : found->second.name));
    expect_stream(stream, "a launch");
    if (shared > found->second.most_dynamic)
        complain(found->second.name + ": asks for " + std::to_string(shared) + " bytes of shared memory, allowed are " +
                 std::to_string(found->second.most_dynamic));
    std::vector<char> parameters;
    for (std::size_t i = 0; i < kernel->parameters.size(); i++) {
        const Parameter& p = kernel->parameters[i];
        parameters.resize(std::size_t(p.offset + p.bytes));
        std::memcpy(parameters.data() + p.offset, arguments[i], std::size_t(p.bytes));
    }
    submit_launch([=] {
        return run(*kernel, {blocks.x, blocks.y, blocks.z}, {threads.x, threads.y, threads.z}, shared, parameters);
    });
    return result(cudaSuccess);
}

// ---- memory ---------------------------------------------------------------------------------------------------------
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
    expect_gpu("memory is allocated");
    if (captured) complain("memory is allocated while a step is captured");
    // At least 8192 unused bytes follow every block, so that an access beyond the end of a block hits no other block.
    void* at = mmap(nullptr, bytes + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return result(cudaErrorMemoryAllocation);
    if (bytes < std::size_t(64) << 20) std::memset(at, 0xff, bytes);  // NaN, which unwritten memory may contain
    *data = at;
    device[static_cast<char*>(at)] = bytes;
    add_memory(at, bytes);
    return result(cudaSuccess);
}
cudaError_t cudaFree(void* data) {
    wait_for_all();
    if (!data) return result(cudaSuccess);
    const auto found = device.find(static_cast<char*>(data));
    if (found == device.end()) return result(cudaErrorInvalidValue);
    munmap(data, found->second + 8192);
    device.erase(found);
    remove_memory(data);
    return result(cudaSuccess);
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
    if (captured) complain("pinned memory is allocated while a step is captured");
    *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    pinned[static_cast<char*>(*data)] = bytes;
    return result(cudaSuccess);
}
cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return cudaHostAlloc(data, bytes, 0); }
cudaError_t cudaFreeHost(void* data) {
    wait_for_all();
    pinned.erase(static_cast<char*>(data));
    std::free(data);
    return result(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    expect_stream(stream, "a copy");
    if (captured && kind == cudaMemcpyHostToDevice && !holds(pinned, from, bytes))
        complain("a captured copy from memory that is not pinned");
    if ((kind != cudaMemcpyDeviceToHost && !holds(device, to, bytes)) ||
        (kind != cudaMemcpyHostToDevice && !holds(device, from, bytes)))
        return result(cudaErrorInvalidValue);
    (kind == cudaMemcpyHostToDevice ? counts.uploads : kind == cudaMemcpyDeviceToHost ? counts.reads : counts.moves)++;
    if (kind == cudaMemcpyDeviceToHost) counts.read_bytes += long(bytes);
    submit([=] {
        masquerade::ptx::count_launch("cudaMemcpyAsync");
        return std::memmove(to, from, bytes), std::string();
    });
    return result(cudaSuccess);
}
cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
    expect_stream(stream, "a fill");
    if (!holds(device, to, bytes)) return result(cudaErrorInvalidValue);
    submit([=] {
        masquerade::ptx::count_launch("cudaMemsetAsync");
        return std::memset(to, byte, bytes), std::string();
    });
    return result(cudaSuccess);
}

// ---- streams, graphs, events ----------------------------------------------------------------------------------------
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    static int one;
    gpu_of_stream = gpu;
    *stream = reinterpret_cast<cudaStream_t>(&one);
    return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    if (captured) complain("a wait while a step is captured");
    wait_for_all();
    return result(cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t) {  // does one piece of work, so that a caller who asks again gets on
    if (captured) complain("asking whether work is finished while a step is captured");
    if (requested.empty()) return result(cudaSuccess);
    wait_until(done + 1);
    return cudaErrorNotReady;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    captured = new Graph;
    return result(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = reinterpret_cast<cudaGraph_t>(captured);
    captured = nullptr;
    return result(cudaSuccess);
}
// CUDA compares the kinds of the nodes, and the edges, of both graphs. The stand-in knows only the number of nodes.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
    Graph &old = *reinterpret_cast<Graph*>(executable), &fresh = *reinterpret_cast<Graph*>(graph);
    if (old.size() != fresh.size()) return result(cudaErrorGraphExecUpdateFailure);
    old = fresh;
    return result(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    *executable = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
    return result(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    expect_stream(stream, "a graph");
    for (const Work& work : *reinterpret_cast<Graph*>(executable)) {
        masquerade::ptx::count_launch("graph_node");
        requested.push_back(work);
    }
    masquerade::ptx::count_launch("cudaGraphLaunch");
    counts.graphs++;
    return result(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete reinterpret_cast<Graph*>(executable);
    return result(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete reinterpret_cast<Graph*>(graph);
    return result(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
    expect_gpu("an event is made");
    *event = reinterpret_cast<cudaEvent_t>(new Event);
    return result(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    expect_stream(stream, "an event");
    if (captured) complain("an event is recorded while a step is captured");
    submit([event] {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        event_of(event).moment = std::chrono::duration<double>(now).count();
        return std::string();
    });
    event_of(event).after = done + requested.size();
    return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    wait_until(event_of(event).after);
    return result(cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
    *milliseconds = float(1e3 * (event_of(to).moment - event_of(from).moment));
    return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    wait_until(event_of(event).after);  // the work of cudaEventRecord() uses the event until it is done
    delete &event_of(event);
    return result(cudaSuccess);
}

StreamCounts* stream_counts() { return &counts; }

// ---- errors and devices ---------------------------------------------------------------------------------------------
cudaError_t cudaGetLastError() {
    const cudaError_t found = last;
    last = fault.empty() ? cudaSuccess : cudaErrorIllegalAddress;
    return found;
}
const char* cudaGetErrorString(cudaError_t status) {
    static std::string text;
    text = status == cudaErrorIllegalAddress ? fault : "error " + std::to_string(int(status));
    return text.c_str();
}
const char* cudaGetErrorName(cudaError_t status) { return status == cudaSuccess ? "cudaSuccess" : "cudaError"; }
cudaError_t cudaGetDeviceCount(int* count) {
    const char* asked = std::getenv("PTX_DEVICES");
    *count = asked ? std::atoi(asked) : 1;
    return result(cudaSuccess);
}
cudaError_t cudaSetDevice(int number) {
    gpu = number;
    return result(cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
    *version = CUDART_VERSION;
    return result(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
    *found = {};
    std::strcpy(found->name, "PTX on fibers");
    found->major = 9;
    return result(cudaSuccess);
}
cudaError_t cudaMemGetInfo(std::size_t* unused, std::size_t* all) {
    *unused = *all = std::size_t(80) << 30;
    return result(cudaSuccess);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void*) {
    *found = {};
    return result(cudaSuccess);
}
cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute what, int value) {
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize || value > 227 << 10) return result(cudaErrorInvalidValue);
    functions()[stub].most_dynamic = std::size_t(value);
    return result(cudaSuccess);
}

}  // extern "C"

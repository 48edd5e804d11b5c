// SPDX-License-Identifier: MIT
// Included by every file with kernels. launch() launches a kernel; dynamic_shared() returns shared memory whose size
// is set at the launch. nvcc compiles a file with kernels into namespace cuda. For the tests, g++ compiles it into
// namespace fibers, which runs kernels on the CPU (docs/kernels-on-the-cpu.md).
#pragma once
#ifdef __CUDACC__
#include <cuda_runtime.h>
#define DEVICE cuda
#else
#define DEVICE fibers
#endif

#include <string>

#include "engine/base/error.h"

namespace masquerade::DEVICE {

// Returns the name of a kernel for messages: "masquerade::cuda::points_kernel<...>". clang++ writes it without the
// template arguments, and with & in front.
template <auto kernel>
std::string name_of_kernel() {
    const std::string all = __PRETTY_FUNCTION__, before = "kernel = ";
    const std::size_t from = all.find_first_not_of('&', all.find(before) + before.size());
    const std::size_t end = all.find_first_of(";]", from);
    return all.substr(from, end - from);
}

#ifdef __CUDACC__
// Throws Error if the status is not cudaSuccess. The message contains what... as text. The message is built only if the
// check fails, because every launch is checked, and building a message takes longer than a launch.
template <class... What>
void check(cudaError_t status, const What&... what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error; otherwise the next check would report it again
    throw Error("CUDA: ", what..., " failed: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
}

// The GPU of this process, and the stream of all ops. The stream is null, CUDA's default stream, until runtime.cu
// creates the stream.
struct Gpu {
    int number = 0;
    cudaStream_t stream = nullptr;
};
inline Gpu& gpu() {
    static Gpu used;
    return used;
}

// Makes gpu() the GPU of the calling thread. CUDA keeps a GPU for each thread, and a new thread begins with GPU 0, on
// which the stream of another GPU does not work.
inline void use_gpu() {
    thread_local int chosen = 0;
    if (chosen == gpu().number) return;
    check(cudaSetDevice(gpu().number), "choosing GPU ", gpu().number);
    chosen = gpu().number;
}
inline cudaStream_t cuda_stream() {
    use_gpu();
    return gpu().stream;
}

// Stands for the name of a kernel in a message. The name is built only if operator<< writes it.
template <auto kernel>
struct KernelName {
    friend std::ostream& operator<<(std::ostream& to, KernelName) { return to << name_of_kernel<kernel>(); }
};

// launch<kernel>(blocks, threads per block, bytes of shared memory, arguments of the kernel ...) launches a kernel on
// the stream of the ops. Every kernel is launched by this function.
template <auto kernel, class... Arguments>
void launch(dim3 blocks, dim3 threads, std::size_t shared_bytes, const Arguments&... arguments) {
    static std::size_t allowed = 48 << 10;  // bytes of dynamic shared memory that the kernel may be launched with
    if (shared_bytes > allowed) {
        check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   int(shared_bytes)),
              "asking for ", shared_bytes, " bytes of shared memory for ", KernelName<kernel>());
        allowed = shared_bytes;
    }
    kernel<<<blocks, threads, shared_bytes, cuda_stream()>>>(arguments...);
    check(cudaGetLastError(), "starting ", KernelName<kernel>(), " on (", blocks.x, ",", blocks.y, ",", blocks.z,
          ") blocks of (", threads.x, ",", threads.y, ",", threads.z, ") threads");
}

// Returns the shared memory that the launch of the kernel requested, aligned to 128 bytes. The address is the same
// for every T.
template <class T>
__device__ T* dynamic_shared() {
    extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
    return reinterpret_cast<T*>(dynamic_shared_bytes);
}
#else
template <auto kernel, class... Arguments>
void launch(dim3 blocks, dim3 threads, std::size_t shared_bytes, const Arguments&... arguments) {
    emulator::run(name_of_kernel<kernel>().c_str(), blocks, threads, shared_bytes, [=] { kernel(arguments...); });
}
template <class T>
T* dynamic_shared() {
    return static_cast<T*>(emulator::dynamic_shared_memory());
}
#endif

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Defines the keywords and functions of CUDA for g++, so that a file of kernels runs on the CPU. The build includes
// this header before each such file, as nvcc includes its own header. docs/kernels-on-the-cpu.md explains how they
// behave here, and what cannot be emulated. Dynamic shared memory and launches go through engine/ops/cuda/kernel.cuh.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define CUDA_EMULATED
#define __host__
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))

// With -fsanitize=thread, clang++ 14 calls memcpy(), memmove() and memset() to copy or set many bytes, and newer versions
// call __tsan_memcpy() and so on. These aliases make clang++ 14 call the latter, too. tests/emulator/memory.cpp defines
// them and records the accesses.
#ifdef __clang__
#if __has_feature(thread_sanitizer)
asm("memcpy = __tsan_memcpy\nmemmove = __tsan_memmove\nmemset = __tsan_memset");
#endif
#endif

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned columns = 1, unsigned rows = 1, unsigned layers = 1) : x(columns), y(rows), z(layers) {}
};
constexpr int warpSize = 32;

// The values for the thread that is running. They are set whenever another thread continues.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace masquerade::emulator {

// The place in the source at which a kernel calls a function. All calls on one line have the same place.
struct Place {
    const char* file;
    int line;
};

enum class Exchange : unsigned char { barrier, lane, up, down, across, ballot };

// Waits until all threads of the block have called it at the same place. Returns how many of them have voted `true`.
int meet_block(bool vote, const char* call, Place place);
// Waits until all lanes in the mask have called it at the same place with the same mask. The result for a lane depends
// on `kind`:
//     barrier   nothing
//     lane      the value of lane `argument`
//     up, down  the value of the lane whose number is smaller, or larger, by `argument`
//     across    the value of the lane whose number differs in the bits of `argument`
//     ballot    for every lane, a bit that is 1 if the lane's value is not 0
// Lane numbers are counted within groups of `width` lanes, except for barrier and ballot.
std::uint64_t meet_warp(Exchange kind, unsigned mask, std::uint64_t value, int argument, int width, const char* call,
                        Place place);
// Call this before the running thread changes these bytes in one atomic operation.
void access_atomically(const void* address, std::size_t size);

// Runs body(context) for every thread of every block. `context` contains the kernel's parameters.
void run(const char* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes, void (*body)(const void*),
         const void* context, std::size_t context_bytes);
template <class F>
void run(const char* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes, const F& f) {
    run(
        kernel, blocks, threads, shared_bytes, [](const void* each) { (*static_cast<const F*>(each))(); }, &f,
        sizeof f);
}
// Computes d += a b with the lanes of a warp, as mma.sync.m16n8k16 does for bf16. See tests/emulator/fragments.cpp.
void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE());
// Throws Error if the address is not a multiple of `size`. CUDA can access `size` bytes at once only at such an
// address.
void expect_aligned(const void* address, std::size_t size);
// Returns the dynamic shared memory that the launch has requested.
void* dynamic_shared_memory();

template <class T>
T shuffled(Exchange kind, unsigned mask, T x, int argument, int width, const char* call, Place place) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a lane hands over 8 bytes at most");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof x);
    bits = meet_warp(kind, mask, bits, argument, width, call, place);
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// A separate function that is not instrumented, so that its accesses count as one atomic operation, not as a read and a
// write.
template <class T, class F>
__attribute__((noinline, no_sanitize("thread"))) T changed(T* at, F f) {
    static_assert(std::is_integral_v<T>, "atomics on floats would make the sum depend on the order of threads");
    access_atomically(at, sizeof(T));
    const T before = *at;
    *at = f(before);
    return before;
}

}  // namespace masquerade::emulator

// The last two parameters of each of these functions are the caller's file and line.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    masquerade::emulator::meet_block(false, "__syncthreads", {file, line});
}
inline int __syncthreads_count(int vote, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return masquerade::emulator::meet_block(vote != 0, "__syncthreads_count", {file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    using namespace masquerade::emulator;
    meet_warp(Exchange::barrier, mask, 0, 0, 32, "__syncwarp", {file, line});
}
template <class T>
T __shfl_sync(unsigned mask, T x, int lane, int width = 32, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
    using namespace masquerade::emulator;
    return shuffled(Exchange::lane, mask, x, lane, width, "__shfl_sync", {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned distance, int width = 32, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
    using namespace masquerade::emulator;
    return shuffled(Exchange::up, mask, x, int(distance), width, "__shfl_up_sync", {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned distance, int width = 32, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
    using namespace masquerade::emulator;
    return shuffled(Exchange::down, mask, x, int(distance), width, "__shfl_down_sync", {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
    using namespace masquerade::emulator;
    return shuffled(Exchange::across, mask, x, bits, width, "__shfl_xor_sync", {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int vote, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
    using namespace masquerade::emulator;
    return unsigned(meet_warp(Exchange::ballot, mask, vote != 0, 0, 32, "__ballot_sync", {file, line}));
}
inline int __any_sync(unsigned mask, int vote, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return __ballot_sync(mask, vote, file, line) != 0;
}
inline int __all_sync(unsigned mask, int vote, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return __ballot_sync(mask, vote == 0, file, line) == 0;
}

template <class T>
T atomicAdd(T* to, std::common_type_t<T> x) {
    return masquerade::emulator::changed(to, [x](T before) { return T(before + x); });
}
template <class T>
T atomicMax(T* to, std::common_type_t<T> x) {
    return masquerade::emulator::changed(to, [x](T before) { return before < x ? x : before; });
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
template <class T>
T __ldg(const T* from) {
    return *from;
}

// SPDX-License-Identifier: MIT
// The kernels that tests/ptx/translate.py has translated from PTX. The stand-in for CUDA's runtime finds them by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace masquerade::ptx {

// The sums over all launches of a kernel. Loads, stores and their bytes are those of global memory. `shared` counts
// both loads and stores of shared memory, and `products` counts mma instructions. `once` counts each byte of global
// memory once for each launch that reads it, and once for each launch that writes it; `once_a_block` counts it once for
// each block that reads or writes it. Both are counted only for PTX_COUNTS.
struct Counts {
    std::uint64_t instructions = 0, loads = 0, bytes_loaded = 0, stores = 0, bytes_stored = 0, shared = 0, products = 0;
    std::uint64_t launches = 0, threads = 0, once_a_block = 0, once = 0;
};

struct Parameter {
    int offset, bytes;
};

struct Kernel {
    const char* name;                                      // mangled, as in PTX
    void (*body)(const char* parameters, Counts* counts);  // called once for each thread
    int static_shared;                                     // bytes; dynamic shared memory begins behind them
    std::vector<Parameter> parameters;
    Counts counts;
};

struct Registered {
    explicit Registered(std::initializer_list<Kernel> all);
};

// Returns null if there is no such kernel.
Kernel* find_kernel(const std::string& name);

struct Size {
    unsigned x, y, z;
};
// Runs the kernel, and returns the fault that ended the launch, or "". `parameters` contains the arguments, each at the
// offset that Kernel::parameters gives.
std::string run(Kernel& kernel, Size blocks, Size threads, std::size_t dynamic_shared,
                const std::vector<char>& parameters);

// Registers a block of global memory. Kernels may access registered blocks only.
void add_memory(const void* begin, std::size_t bytes);
void remove_memory(const void* begin);

}  // namespace masquerade::ptx

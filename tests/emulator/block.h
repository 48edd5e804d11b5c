// SPDX-License-Identifier: MIT
// The block that is running, as the source files of the emulator share it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/cuda.h"
#include "tests/emulator/emulator.h"
#include "tests/emulator/fiber.h"

namespace masquerade::emulator {

struct Bytes {
    const char *begin = nullptr, *end = nullptr;
    bool hold(const void* address) const { return address >= begin && address < end; }
};

// A CUDA thread. If it waits, the members from `call` on describe the call in which it waits.
struct Thread {
    enum class State : unsigned char { unstarted, ready, waits, finished };
    uint3 index;
    int number, warp, lane;
    State state;
    Fiber* fiber;  // null if the thread has not started or has finished
    Bytes stack;   // the stack of `fiber`, here because every memory access is compared with it
    const char* call;
    Place place;
    Exchange kind;
    unsigned mask;
    int argument, width;
    std::uint64_t value, result;
};

// The thread that is running; null outside of a launch, and on any other thread of the program. It is not thread_local,
// because every memory access of a kernel reads it, and for thread_local the compiler would call a function that checks
// whether it is initialised.
extern __thread Thread* running;

struct Warp {
    unsigned exists, ready, finished;  // bit l is lane l
    unsigned meets;                    // lanes that wait for other lanes in a call of the warp
};

struct Block {
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    int arrived, votes;              // numbers of threads at the barrier of the block, and of those whose vote is true
    const Thread *first, *finished;  // the thread that came to the barrier first; a thread that has finished
};
Block& current_block();

bool same(Place a, Place b);
std::string what_of(const Thread& t);  // "thread (0,0,0) waits in __syncthreads at FILE:LINE"
// Ends the launch with an Error, whose message names the kernel, block and thread, followed by `what`.
[[noreturn]] void fail(const std::string& what);
std::string name_of(const uint3& index);  // (1,0,0)

// The ranges of memory that the current launch uses.
struct Places {
    Bytes stacks;         // the stacks of all fibers
    Bytes parameters;     // the kernel's parameters, before each thread has its own copy
    Bytes shared, asked;  // the memory for dynamic shared memory; the part of it that the launch has requested
    bool watched = true;
};
extern Places places;

extern Counts counted;

// ---- memory.cpp: checks which threads may access which memory, and when --------------------------------------------
namespace memory {
void start_launch();
void start_block(const uint3& block);
void block_met();
void warp_met(int warp, unsigned lanes);
void atomic(const void* address, std::size_t size);
}  // namespace memory

}  // namespace masquerade::emulator

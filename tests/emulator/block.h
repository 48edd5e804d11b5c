// SPDX-License-Identifier: MIT
// The block that runs, as the parts of the emulator know it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/cuda.h"
#include "tests/emulator/emulator.h"
#include "tests/emulator/fiber.h"

namespace masquerade::emulator {

// One CUDA thread, and the call it waits in.
struct Thread {
    enum class State : unsigned char { unstarted, ready, waits, finished };
    uint3 index;
    int number, warp, lane;
    State state;
    Fiber* fiber;  // while it is started and not finished
    const char* call;
    Place place;
    Exchange kind;
    unsigned mask;
    int argument, width;
    std::uint64_t value, result;
};

// The thread that runs; null outside of a launch, and on any other thread of the program. Not thread_local: every
// access of a kernel reads it, and that would call a function that asks whether it is initialised.
extern __thread Thread* running;

struct Warp {
    unsigned exists, ready, finished;  // bits by lane
    unsigned meets;                    // who waits for other lanes
};

struct Block {
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    int arrived, votes;              // at the barrier of the block
    const Thread *first, *finished;  // who came to it first; some thread that has finished
};
Block& current_block();

bool same(Place a, Place b);
std::string what_of(const Thread& t);  // "thread (0,0,0) waits in __syncthreads at FILE:LINE"
// Ends the launch with an Error that says which kernel, block and thread, then `what`.
[[noreturn]] void fail(const std::string& what);
std::string name_of(const uint3& index);  // (1,0,0)

struct Bytes {
    const char *begin = nullptr, *end = nullptr;
    bool hold(const void* address) const { return address >= begin && address < end; }
};
// The ranges of memory of this launch, by their use.
struct Places {
    Bytes stacks;         // of all fibers
    Bytes parameters;     // the kernel's, before each thread has its own
    Bytes shared, asked;  // room for dynamic shared memory; the part that the launch asked for
    bool watched = true;
};
extern Places places;

extern Counts counted;

// ---- memory.cpp: who may touch what, when ---------------------------------------------------------------------------
namespace memory {
void start_launch();
void start_block(const uint3& block);
void block_met();
void warp_met(int warp, unsigned lanes);
void atomic(const void* address, std::size_t size);
}  // namespace memory

}  // namespace masquerade::emulator

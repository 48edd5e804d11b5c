// SPDX-License-Identifier: MIT
// FakeControl, with which a test controls the library of fake.cpp. The test finds the function fake_control() in the
// library by name.
#pragma once
#include <cstddef>

#include "engine/ops/ops.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

struct FakeControl {
    const OpTable* backing = nullptr;  // ops that the device runs; by default, the CPU ops of the program
    // If the ops of `backing` leave sums for later (Grad::late): the function that adds them.
    void (*add_late_sums)(const void* gradient) = nullptr;
    void (*forget_late_sums)() = nullptr;
    std::size_t limit = 1 << 28;  // bytes of memory that the device has
    std::size_t taken = 0;        // bytes of memory that are allocated
    int blocks = 0;               // blocks that are allocated
    int allocations = 0;          // allocations requested so far, also refused ones
    int ways[3] = {};             // number of copies of each Way
    int graphs = 0;               // graphs launched so far
    ProductRule products;         // the rule that was set last
    int outgrown = 0;             // as many captures fail because an op needs more memory
    int late = 0;                 // sums that ops have left for later so far
    int kept = 0;                 // calls in the graph that was launched last
    int idle = 0;                 // waits after which the device has no work left
    int fault = 0;                // synchronise() throws: 1 Error, 2 BadInput, 3 std::bad_alloc, 0 nothing
};
using FakeEntry = FakeControl* (*)();

}  // namespace masquerade

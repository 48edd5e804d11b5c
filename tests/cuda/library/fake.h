// SPDX-License-Identifier: MIT
// How a test steers the library of fake.cpp: fake_control(), found in it by name.
#pragma once
#include <cstddef>

#include "engine/ops/ops.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

struct FakeControl {
    const OpTable* backing = nullptr;  // what its ops call; of a program its own CPU ops
    std::size_t limit = 1 << 28;       // bytes of memory
    std::size_t taken = 0;             // of them
    int blocks = 0;                    // that live
    int allocations = 0;               // asked for so far
    int ways[3] = {};                  // copies each way
    int graphs = 0;                    // launched so far
    ProductRule products;              // as asked for last
    int kept = 0;                      // calls that the last one held
    int idle = 0;                      // waits after which a device would have nothing left to do
    int fault = 0;                     // synchronise throws: 1 Error, 2 BadInput, 3 std::bad_alloc
};
using FakeEntry = FakeControl* (*)();

}  // namespace masquerade

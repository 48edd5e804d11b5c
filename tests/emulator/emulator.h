// SPDX-License-Identifier: MIT
// Kernels on the CPU: every CUDA thread is a fiber, a warp is 32 of them that meet, blocks run one after the other.
// A fault in a launch is thrown as one Error that names the kernel, the block and the thread: a barrier that
// not all threads come to, lanes that meet at different calls, a race, shared memory that nobody wrote. Kernels are
// found in namespace fibers, compiled from the sources that are compiled for CUDA, too (docs/kernels-on-the-cpu.md).
#pragma once
#include <cstdint>

#include "engine/ops/cuda/multiply.h"
#include "engine/ops/table.h"

namespace masquerade::emulator {

// Who goes first between two barriers, of blocks, warps and lanes alike. A right kernel gives the same bits in all.
enum class Order { forward, reversed, shuffled };

// How the tensor cores add 16 products to a number. `rounded` is the simplest way. The others follow measurements on
// these GPUs (Khattak and Mikaitis, Accurate models of NVIDIA tensor cores, 2025).
enum class TensorSums {
    rounded,  // in the order of the depth, each sum rounded to the nearest float
    as_a100,  // 8 at once: the terms are cut behind bit 25, from the largest exponent on, and the sum behind bit 24
    as_h100   // 16 at once, behind bit 26
};

struct Settings {
    Order order = Order::forward;
    std::uint32_t seed = 1;    // of a shuffled order
    bool watch_memory = true;  // races, shared memory that nobody wrote, another thread's stack
    TensorSums tensor_sums = TensorSums::rounded;
};
Settings& settings();

// Whether the kernels of this build tell of every access to memory; sanitizers leave no room for that.
bool can_watch_memory();

struct Counts {
    long launches = 0, switches = 0, accesses = 0;
};
const Counts& counts();

// Which products the plain loop in the place of cuBLASLt does not make; null: it makes all.
extern bool (*refuses_product)(const Multiplication&);

// The ops of namespace fibers; one that is not there throws its name.
const OpTable& ops();
// Null in this table where there is no kernel.
const OpTable& kernels();

// While it lives, calls for Device::cuda run here, with these settings.
class AsCuda {
  public:
    explicit AsCuda(Settings chosen = {});
    AsCuda(const AsCuda&) = delete;
    ~AsCuda();

  private:
    const OpTable* before_;
    Settings settings_before_;
};

}  // namespace masquerade::emulator

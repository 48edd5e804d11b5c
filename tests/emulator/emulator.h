// SPDX-License-Identifier: MIT
// Runs kernels on the CPU. Every CUDA thread is a fiber, 32 of them are a warp, and blocks run one after the other. If
// a kernel has an error, the launch throws one Error that names the kernel, the block and the thread. Errors are: a
// barrier that not all threads reach, lanes of a warp that wait in different calls, a race, and a read of shared memory
// that no thread has written. The kernels are in namespace fibers. They are compiled from the same sources as for CUDA
// (docs/kernels-on-the-cpu.md).
#pragma once
#include <cstdint>

#include "engine/ops/cuda/multiply.h"
#include "engine/ops/table.h"

namespace masquerade::emulator {

// The order in which blocks run, and in which warps and lanes run between two barriers. A correct kernel computes the
// same bits in every order.
enum class Order { forward, reversed, shuffled };

// How the tensor cores add 16 products to a number. `rounded` is the simplest way. The other two follow measurements on
// these GPUs (Khattak and Mikaitis, Accurate models of NVIDIA tensor cores, 2025): terms are truncated behind a bit,
// which is counted from the largest exponent on.
enum class TensorSums {
    rounded,  // one product after the other; each sum is rounded to the nearest float
    as_a100,  // 8 products at a time; each term is truncated behind bit 25, and the sum behind bit 24
    as_h100   // 16 products at a time; each term is truncated behind bit 26, and the sum behind bit 24
};

struct Settings {
    Order order = Order::forward;
    std::uint32_t seed = 1;  // seed of a shuffled order
    // Finds races, reads of shared memory that no thread has written, and accesses to another thread's stack.
    bool watch_memory = true;
    TensorSums tensor_sums = TensorSums::rounded;
};
Settings& settings();

// Whether the kernels of this build report every memory access. If the build uses a sanitizer, they cannot.
bool can_watch_memory();

struct Counts {
    long launches = 0, switches = 0, accesses = 0;
};
const Counts& counts();

// Returns true for the products that the plain loop, which replaces cuBLASLt, must refuse. null: it refuses none.
extern bool (*refuses_product)(const Multiplication&);

// The ops of namespace fibers. An op that is not compiled for the emulator throws an Error with its name.
const OpTable& ops();
// The kernels of namespace fibers. An op without a kernel is null in this table.
const OpTable& kernels();

// During the lifetime of this object, calls for Device::cuda run in the emulator, with these settings.
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

// SPDX-License-Identifier: MIT
// Kernels for the tests of the emulator (planted.cu): kernels for each CUDA function and for the functions of a warp,
// and kernels with one error each. Also declares functions for tests of working memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade {

enum class Fault {
    none,
    no_barrier_before_reading,  // this and the following: in block_sums()
    no_barrier_before_writing,
    two_barriers,
    half_a_barrier,
    warp_waits_for_block,
    early_return,
    unwritten,
    blocks_write_one_number,
    next_block_is_read,
    lent_stack,
    past_the_end,
    misaligned,
    no_warp_barrier,  // this and the following: in warp_sums()
    shuffle_for_barrier,
    half_a_shuffle,
    two_shuffles,
    absent_lane,
    not_in_mask,
};

namespace fibers {

// For each b, computes y[b] with a block of 64 threads: the sum over all rounds of the 64 numbers of x for (round, b).
// If `shared` is true, the threads exchange numbers in dynamic shared memory.
void block_sums(Fault fault, bool shared, int blocks, int rounds, const float* x, float* y);
// For each b, computes y[b], the sum of the 32 numbers of x for b. The lanes of a warp exchange numbers through shared
// memory in the first step, and by shuffles in the other steps.
void warp_sums(Fault fault, int blocks, const float* x, float* y);

// Calls each CUDA function with one warp, in the order of planted.cu. The results for lane i are stored from to[16 i]
// on.
void words(const unsigned* given, unsigned* to);
// Runs the functions of engine/math/lanes.h with one warp, on the n numbers of x. found[0] is the result of sum(),
// found[1] and found[2] are the results of sums(), and found[3] is the result of top(). each() writes y[0] .. y[n-1]
// and, after meet(), the same numbers in reverse order to y[n] .. y[2n-1]. store() writes `stored`. *count grows by the
// number of lanes in which first() is true.
void verbs(int n, const float* x, float* found, float* y, float* stored, bool add, int* count);

// Simulates the beginning of a captured step: data that ops have sent before is lost.
void begin_capture();

// DeviceRuntime::add_late_sums and forget_late_sums.
void add_sums_left(const void* gradient);
void forget_sums_left();

// Returns the growth of the ops' working memory, in bytes, if a workspace of `bytes` bytes is requested.
std::size_t growth_by(std::int64_t bytes);

}  // namespace fibers
}  // namespace masquerade

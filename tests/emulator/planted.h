// SPDX-License-Identifier: MIT
// Kernels of the tests (planted.cu): what each CUDA word does, the verbs of a warp, and kernels with one fault each;
// and how working memory is counted.
#pragma once
#include <cstddef>
#include <cstdint>

namespace masquerade {

enum class Fault {
    none,
    no_barrier_before_reading,  // of block_sums
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
    no_warp_barrier,  // of warp_sums
    shuffle_for_barrier,
    half_a_shuffle,
    two_shuffles,
    absent_lane,
    not_in_mask,
};

namespace fibers {

// y[b] = the sum over `rounds` of the sum of x's 64 numbers of (round, b), a block of 64 threads for each b; `shared`:
// they meet in dynamic shared memory.
void block_sums(Fault fault, bool shared, int blocks, int rounds, const float* x, float* y);
// y[b] = the sum of x's 32 numbers of b, half of it through shared memory, half by shuffles.
void warp_sums(Fault fault, int blocks, const float* x, float* y);

// The results that each word of CUDA gives lane i of one warp, from place 16 i on, in the order of planted.cu.
void words(const unsigned* given, unsigned* to);
// Runs the verbs on n numbers with one warp. found: sum, both sums, top; y: each, stored; count: how many lanes are
// first.
void verbs(int n, const float* x, float* found, float* y, float* stored, bool add, int* count);

// Plays the begin of a captured step: what ops have sent before is lost.
void begin_capture();

// How the count of the ops' bytes grows by one workspace that is asked for so many.
std::size_t growth_by(std::int64_t bytes);

}  // namespace fibers
}  // namespace masquerade

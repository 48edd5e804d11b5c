// SPDX-License-Identifier: MIT
#include "tests/emulator/planted.h"

#include "engine/ops/cuda/device_memory.cuh"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

constexpr int width = 64;
constexpr unsigned all = 0xffffffffu;

template <Fault fault, bool dynamic>
__global__ void block_sums_kernel(int rounds, const float* x, float* y) {
    __shared__ float fixed[width];
    float* terms = dynamic ? dynamic_shared<float>() : fixed;
    const int t = int(threadIdx.x), past = fault == Fault::past_the_end;
    float total = 0;
    for (int round = 0; round < rounds; round++) {
        if (fault != Fault::unwritten || t != 5)
            terms[t + past] = x[(round * int(gridDim.x) + int(blockIdx.x)) * width + t];
#ifdef CUDA_EMULATED
        if (fault == Fault::misaligned) emulator::expect_aligned(x + 1, 16);
#endif
        if (fault == Fault::early_return && t == 63) return;
        if (fault == Fault::warp_waits_for_block && t == 40) __syncwarp();
        if (fault == Fault::two_barriers && t >= 32)
            __syncthreads();
        else if (fault == Fault::half_a_barrier && t >= 32)
            __syncwarp();
        else if (fault != Fault::no_barrier_before_reading)
            __syncthreads();
        if (t == 0)
            for (int i = 0; i < width; i++) total += terms[i];
        if (fault != Fault::no_barrier_before_writing) __syncthreads();
    }
    if (fault == Fault::lent_stack) {
        __shared__ float* lent;
        if (t == 1) lent = &total;
        __syncthreads();
        if (t == 0) total += *lent;
        __syncthreads();
    }
    if (fault == Fault::next_block_is_read && t == 0 && blockIdx.x + 1 < gridDim.x) total += y[blockIdx.x + 1];
    if (t == 0) y[fault == Fault::blocks_write_one_number ? 0 : blockIdx.x] = total;
}

template <Fault fault>
__global__ void warp_sums_kernel(const float* x, float* y) {
    __shared__ float terms[32];
    const int t = int(threadIdx.x);
    terms[t] = x[int(blockIdx.x) * 32 + t];
    float total = 0;
    if (fault == Fault::shuffle_for_barrier)
        total = 0 * __shfl_sync(all, total, 0);
    else if (fault != Fault::no_warp_barrier)
        __syncwarp();
    total += terms[t] + terms[t ^ 16];
    if (fault == Fault::half_a_shuffle) {
        if (t % 2) total += __shfl_xor_sync(all, total, 8);
        return;
    }
    if (fault == Fault::two_shuffles && t < 16)
        total += __shfl_xor_sync(all, total, 8);
    else
        total += __shfl_xor_sync(fault == Fault::not_in_mask && t == 7 ? all - 128u : all, total, 8);
    total += __shfl_xor_sync(all, total, 4);
    total += __shfl_down_sync(all, total, 2);
    if (fault == Fault::absent_lane && t < 16)
        total += __shfl_sync(0xffffu, total, 20, 32);
    else if (t < 16)
        total += __shfl_sync(0xffffu, total, t ^ 1, 16);
    if (t == 0) y[blockIdx.x] = total;
}

__global__ void words_kernel(const unsigned* given, unsigned* to) {
    __shared__ unsigned count, most;
    const int t = int(threadIdx.x);
    const unsigned mine = 100 + unsigned(t);
    if (t == 0) count = most = 0;
    __syncthreads();
    atomicAdd(&count, 2u);
    atomicMax(&most, mine);
    unsigned* mine_to = to + 16 * t;
    mine_to[0] = __shfl_sync(all, mine, 3);
    mine_to[1] = __shfl_sync(all, mine, t + 1, 8);
    mine_to[2] = __shfl_up_sync(all, mine, 2);
    mine_to[3] = __shfl_up_sync(all, mine, 3, 4);
    mine_to[4] = __shfl_down_sync(all, mine, 4, 8);
    mine_to[5] = __shfl_xor_sync(all, mine, 3);
    mine_to[6] = __ballot_sync(all, t % 3 == 0);
    mine_to[7] = unsigned(__any_sync(all, t == 2));
    mine_to[8] = unsigned(__any_sync(all, t == 99));
    mine_to[9] = unsigned(__all_sync(all, t < 32));
    mine_to[10] = unsigned(__all_sync(all, t != 2));
    mine_to[11] = unsigned(__syncthreads_count(t % 2));
    mine_to[12] = count;
    mine_to[13] = most;
    const unsigned half = t < 4 ? 0x0fu : 0xf0u;  // two halves of eight lanes; each half has its own mask
    mine_to[14] = t < 8 ? __shfl_xor_sync(half, mine, 1, 4) : 0;
    mine_to[15] = __ldg(given) + blockDim.x + gridDim.x + unsigned(__popc(mine));
}

struct Verbs {
    const float* x;
    float *found, *y, *stored;
    bool add;
    int* count;
    int n;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t) const {
        const float alone = sum(lanes, n, [&](int i) { return x[i]; });
        const Two<float> both = sums(
            lanes, n, [&](int i) { return x[i]; }, [&](int i) { return 2 * x[i]; });
        const float largest = top(lanes, n, [&](int i) { return x[i]; });
        each(lanes, n, [&](int i) { y[i] = alone - both.first + x[i]; });
        store(lanes, n, stored, add, [&](int i) { return x[i]; });
        if (first(lanes)) {
            found[0] = alone, found[1] = both.first, found[2] = both.second, found[3] = largest;
            ++*count;
        }
        meet(lanes);
        each(lanes, n, [&](int i) { y[n + i] = y[n - 1 - i]; });  // reads a number that another lane has written
    }
};

template <Fault fault>
void block_sums_with(bool shared, unsigned blocks, int rounds, const float* x, float* y) {
    if (shared)
        launch<block_sums_kernel<fault, true>>(blocks, width, sizeof(float) * width, rounds, x, y);
    else
        launch<block_sums_kernel<fault, false>>(blocks, width, 0, rounds, x, y);
}

}  // namespace

void block_sums(Fault fault, bool shared, int blocks, int rounds, const float* x, float* y) {
    switch (fault) {
#define WITH(name) \
    case Fault::name: return block_sums_with<Fault::name>(shared, unsigned(blocks), rounds, x, y);
        WITH(no_barrier_before_reading)
        WITH(no_barrier_before_writing)
        WITH(two_barriers)
        WITH(half_a_barrier)
        WITH(warp_waits_for_block)
        WITH(early_return)
        WITH(unwritten)
        WITH(blocks_write_one_number)
        WITH(next_block_is_read)
        WITH(lent_stack)
        WITH(past_the_end)
        WITH(misaligned)
#undef WITH
        default: return block_sums_with<Fault::none>(shared, unsigned(blocks), rounds, x, y);
    }
}

void warp_sums(Fault fault, int blocks, const float* x, float* y) {
    switch (fault) {
#define WITH(name) \
    case Fault::name: return launch<warp_sums_kernel<Fault::name>>(unsigned(blocks), 32, 0, x, y);
        WITH(no_warp_barrier)
        WITH(shuffle_for_barrier)
        WITH(half_a_shuffle)
        WITH(two_shuffles)
        WITH(absent_lane)
        WITH(not_in_mask)
#undef WITH
        default: return launch<warp_sums_kernel<Fault::none>>(unsigned(blocks), 32, 0, x, y);
    }
}

void words(const unsigned* given, unsigned* to) { launch<words_kernel>(1, 32, 0, given, to); }

void verbs(int n, const float* x, float* found, float* y, float* stored, bool add, int* count) {
    for_each_row(1, Verbs{x, found, y, stored, add, count, n});
}

struct Kept {};
#ifdef CUDA_EMULATED
void begin_capture() { begin_capture_of_tests(); }
#endif

void add_sums_left(const void* gradient) { add_late_sums(gradient); }
void forget_sums_left() { forget_late_sums(); }

std::size_t growth_by(std::int64_t bytes) {
    const std::size_t before = bytes_of_workspaces();
    workspace<Kept, char>(bytes);
    return bytes_of_workspaces() - before;
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Adds the sums of chunks, for column_sums.cuh and others. If a gradient is not read before the end of the backward
// (Grad::late), its chunks are kept, and one launch adds the chunks of all such gradients. A launch for each gradient
// would keep only a few warps busy, and would take as long as this one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <vector>

#include "engine/ops/cuda/packet.cuh"
#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::DEVICE {

// The sum of `chunks` rows of `columns` numbers each, which begin `step` numbers apart. The sum is stored at `to` or,
// if `add` is set, added to the numbers there.
struct ChunkSum {
    const float* parts;
    std::int64_t chunks;
    int step, columns;
    float* to;
    bool add, packed = false;  // `packed`: whether all rows, and `to`, are aligned for packets of 16 bytes
};
template <int most>
struct ChunkSums {
    ChunkSum sums[most];
};

constexpr int columns_of_adder = per_packet<float>;

// Adds the chunks of the n columns from c on, one chunk after another.
template <int n>
__device__ void add_columns(const ChunkSum& sum, int c) {
    float total[n] = {}, x[n];
#pragma unroll 8
    for (std::int64_t chunk = 0; chunk < sum.chunks; chunk++) {
        read_numbers(sum.parts + chunk * sum.step + c, x);
#pragma unroll
        for (int k = 0; k < n; k++) total[k] += x[k];
    }
    if (sum.add) {
        read_numbers(sum.to + c, x);
#pragma unroll
        for (int k = 0; k < n; k++) total[k] = x[k] + total[k];
    }
    write_numbers(sum.to + c, total);
}

// The blocks with y = i compute sum i. A thread adds columns_of_adder neighbouring columns.
template <int most>
__global__ void __launch_bounds__(32) add_chunks_kernel(const __grid_constant__ ChunkSums<most> all) {
    const ChunkSum& sum = all.sums[blockIdx.y];
    const int c = (int(blockIdx.x) * 32 + int(threadIdx.x)) * columns_of_adder;
    if (sum.packed && c < sum.columns) return add_columns<columns_of_adder>(sum, c);
    for (int k = c; k < c + columns_of_adder && k < sum.columns; k++) add_columns<1>(sum, k);
}

template <int most>
void launch_add_chunks(const ChunkSum* sums, std::size_t count) {
    ChunkSums<most> all{};
    int widest = 0;
    for (std::size_t i = 0; i < count; i++) {
        const ChunkSum& s = all.sums[i] = sums[i];
        all.sums[i].packed =
            s.columns % columns_of_adder == 0 && rows_in_packets(s.parts, s.step) && is_aligned(s.to, sizeof(Packet));
        widest = std::max(widest, s.columns);
    }
    constexpr int columns_of_block = 32 * columns_of_adder;
    const unsigned blocks = unsigned(widest + columns_of_block - 1) / columns_of_block;
    if (blocks > 0) launch<add_chunks_kernel<most>>(dim3(blocks, unsigned(count)), 32, 0, all);
}

// The sums that are left for later. Each op that leaves sums has memory of its own for their chunks.
struct LateSums {
    static constexpr int most = 100;  // a launch has at most 4 KiB of arguments
    std::vector<ChunkSum> sums;
    // If the first sum that an op left is sums[i], memory[i] has the chunks of all sums of this op.
    std::deque<Workspace> memory;

    void add() {
        if (!sums.empty()) launch_add_chunks<most>(sums.data(), sums.size());
        sums.clear();
    }
};
inline LateSums& late_sums() {
    static LateSums all;
    return all;
}

// DeviceRuntime::add_late_sums and forget_late_sums.
inline void add_late_sums(const void* to) {
    const std::vector<ChunkSum>& left = late_sums().sums;
    const auto wanted = [to](const ChunkSum& sum) { return !to || (sum.to <= to && to < sum.to + sum.columns); };
    if (std::any_of(left.begin(), left.end(), wanted)) late_sums().add();
}
inline void forget_late_sums() noexcept { late_sums().sums.clear(); }

struct Chunks {};
constexpr int most_sums_of_op = 2;

// Returns memory for the `count` numbers of all chunks of the next call of add_chunks(). `late`: as in that call.
inline float* memory_of_chunks(std::int64_t count, bool late) {
    if (!late) return workspace<Chunks>(count);
    LateSums& all = late_sums();
    if (all.sums.size() + most_sums_of_op > LateSums::most) all.add();
    while (all.memory.size() <= all.sums.size()) all.memory.emplace_back();
    return static_cast<float*>(all.memory[all.sums.size()].reserve(std::size_t(count) * sizeof(float)));
}

// Computes up to most_sums_of_op sums in one launch: now or, if `late` is set, when add_late_sums() is called. No two
// of them, and none that is left already, may have the same `to`.
inline void add_chunks(std::initializer_list<ChunkSum> sums, bool late) {
    if (late)
        late_sums().sums.insert(late_sums().sums.end(), sums);
    else
        launch_add_chunks<most_sums_of_op>(sums.begin(), sums.size());
}

}  // namespace masquerade::DEVICE

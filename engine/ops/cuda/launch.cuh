// SPDX-License-Identifier: MIT
// Runs ops on CUDA that compute every row, or every number (point), of a tensor independently. A row is computed by one
// warp, and a point by one thread. For store_points(), one thread computes 32 bytes of consecutive points. All kernels
// run on one stream, and the host waits for none of them, so that a whole step can be captured as a CUDA graph.
#pragma once
#include <cstdint>

#include "engine/math/lanes.h"
#include "engine/ops/cuda/column_sums.cuh"
#include "engine/ops/cuda/device_memory.cuh"
#include "engine/ops/cuda/draws.cuh"
#include "engine/ops/cuda/packet_rows.cuh"

namespace masquerade::DEVICE {

// A block of rows has many warps, because the warps of a block share what their rows read in common, such as the
// weights of a norm.
constexpr int warps_a_block = 16;
constexpr int threads_a_block = 32 * warps_a_block, points_a_block = 256;

// A stage is a function object that computes a part of the op. For each row, calls stage(lanes, row) for all stages, in
// order. All lanes of a warp compute the same row, so that a stage may use warp shuffles. Any lane of a stage may read
// what earlier stages have written to the row. ptxas limits the registers of a thread so that at least `blocks` blocks
// fit on a multiprocessor. Without this number, it gives so few that some kernels spill.
template <int blocks, class... Stages>
__global__ void __launch_bounds__(threads_a_block, blocks) rows_kernel(std::int64_t rows, Stages... stages) {
    const std::int64_t row = std::int64_t(blockIdx.x) * warps_a_block + threadIdx.x / 32;
    if (row < rows) ((stages(WarpLanes{}, row), __syncwarp()), ...);
}

// Computes the rows, as rows_kernel does, and sums the chunks of rows, as chunk_sums_kernel does. A block computes the
// rows of a chunk and then sums it, so that it finds the chunk in its cache.
template <int n, class F, class A, class... Terms>
__global__ void __launch_bounds__(threads_a_block, 2)
    rows_and_chunks_kernel(std::int64_t rows, F f, int width, A* parts, Terms... terms) {
    const std::int64_t first = std::int64_t(blockIdx.x) * rows_per_chunk;
    for (int i = int(threadIdx.x) / 32; i < rows_per_chunk && first + i < rows; i += warps_a_block)
        f(WarpLanes{}, first + i);
    for (int c = int(threadIdx.x) * n; c < width; c += threads_a_block * n)
        sum_chunk<n>(blockIdx.x, c, rows, width, parts, terms...);
}

template <class F>
__global__ void __launch_bounds__(points_a_block) points_kernel(std::int64_t n, F f) {
    const std::int64_t i = std::int64_t(blockIdx.x) * points_a_block + threadIdx.x;
    if (i < n) f(i);
}

// Draws n random words for a row, one for each channel (column). The lanes of the warp share the work: each lane calls
// f(OneLane(), begin, count, words) for groups of up to four words. words[k] belongs to channel i = begin + k, and is
// stream.at(document, position, i / 4)[i % 4].
template <class F>
HD void each_draw(WarpLanes lanes, const KeyedStream& stream, int document, int position, int n, F f) {
    each(lanes, (n + 3) / 4, [&](int block) {
        Four bits = draw_at(stream, document, position, block);
        f(OneLane{}, 4 * block, n - 4 * block < 4 ? n - 4 * block : 4, bits.v);
    });
}

// Returns the number of blocks for `items` items if a block computes `each` items. The number must not exceed
// 2^31 - 1, CUDA's limit; this is not checked.
inline unsigned blocks_for(std::int64_t items, int each) { return unsigned((items + each - 1) / each); }

template <int blocks, class... Stages>
void launch_rows_by(std::int64_t rows, Stages... stages) {
    if (rows <= 0) return;
    launch<rows_kernel<blocks, Stages...>>(blocks_for(rows, warps_a_block), threads_a_block, 0, rows, stages...);
}

// Calls each stage(lanes, row) for every row, one warp per row. A stage is a function object whose operator() is marked
// HD (math/lanes.h). A stage may read what earlier stages have written to the same row.
template <class... Stages>
void for_each_row(std::int64_t rows, Stages... stages) {
    launch_rows_by<2>(rows, stages...);
}
template <class... Packed, class... Plain>
void for_each_row(std::int64_t rows, const TwoForms<Packed, Plain>&... stages) {
    if ((fits_packets(stages.packed) && ...))
        for_each_row(rows, stages.packed...);
    else
        for_each_row(rows, stages.plain...);
}

// Like for_each_row(), for rows that take long to compute: each thread may have more registers.
template <class F>
void for_each_long_row(std::int64_t rows, F f) {
    launch_rows_by<1>(rows, f);
}

template <class F, class A, class... Terms>
void for_each_row_and_sums(std::int64_t rows, int columns, const F& f, const ColumnSum<A, Terms>&... sums) {
    for_each_row(rows, f);
    launch_column_sums(rows, columns, sums...);
}
template <class Packed, class Plain, class A, class... Terms>
void for_each_row_and_sums(std::int64_t rows, int columns, const TwoForms<Packed, Plain>& f,
                           const ColumnSum<A, Terms>&... sums) {
    constexpr int n = columns_of_lane<Terms...>;
    if (columns <= 0 || !(sums.to && ...) || !terms_in_packets(sums.term...) || !fits_packets(f.packed)) {
        for_each_row(rows, f);
        return launch_column_sums(rows, columns, sums...);
    }
    const auto start = [&](unsigned chunks, int width, float* parts) {
        launch<rows_and_chunks_kernel<n, Packed, A, Terms...>>(chunks, threads_a_block, 0, rows, f.packed, width, parts,
                                                               sums.term...);
    };
    launch_chunk_sums<n>(rows, columns, start, sums...);
}

template <class F>
void for_each_point(std::int64_t n, F f) {
    if (n <= 0) return;
    launch<points_kernel<F>>(blocks_for(n, points_a_block), points_a_block, 0, n, f);
}

template <class S, class F>
void for_each_point(std::int64_t n, StorePoint<S, F> store) {
    constexpr int count = per_group<S>;
    const bool aligned = is_aligned(store.to, 16) && loads_aligned<count>(store.f);
    for_each_point((n + count - 1) / count, StoreGroup<S, F>{n, aligned, store});
}

template <class S, class F>
void store_points(std::int64_t n, S* to, bool add, F f) {
    for_each_point(n, StorePoint<S, F>{to, add, f});
}

template <class Tag>
const int* table_of(const std::vector<int>& numbers) {
    static Upload upload;
    std::memcpy(upload.write(numbers.size() * sizeof(int)), numbers.data(), numbers.size() * sizeof(int));
    return reinterpret_cast<const int*>(upload.send());
}

}  // namespace masquerade::DEVICE

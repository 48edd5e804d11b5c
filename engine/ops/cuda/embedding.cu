// SPDX-License-Identifier: MIT
// The backward of embedding, whose forward is in engine/ops/rows.cpp. It sums the gradients of rows with the same id. It
// first sorts the rows by id with a stable sort, so that each sum runs in row order. In f32, the sums therefore have the
// same bits as on the CPU.
#include "engine/ops/check.h"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// A radix sort by digits of 8 bits, from the lowest digit to the highest. For each digit, one kernel counts how often
// each value of the digit occurs in every tile of 512 rows, one turns the counts into positions, and one moves every
// row to its new position. One warp computes a tile, 32 rows at a time and in order, so that rows with the same digit
// keep their order.
constexpr int digit_bits = 8, digits = 1 << digit_bits, rows_per_tile = 512, scan_block = 1024;

struct Counts {};
struct Ids {};
struct Rows {};
struct Starts {};

// Returns a mask of those lanes of the warp that have a row (`there`) and whose digit equals the calling lane's
// digit.
__device__ inline unsigned peers_of(int digit, bool there) {
    unsigned peers = __ballot_sync(0xffffffffu, there);
    for (int bit = 0; bit < digit_bits; bit++) {
        const bool one = digit >> bit & 1;
        const unsigned ones = __ballot_sync(0xffffffffu, one);
        peers &= one ? ones : ~ones;
    }
    return peers;
}

// The row of one lane. A warp processes 32 rows of a tile at a time, one per lane. `there`: whether the row exists.
// `rank`: how many earlier rows of the 32 have the same digit. `count`: how many rows of the 32 have this digit.
struct Place {
    std::int64_t row;
    bool there;
    int digit, rank, count;
};
__device__ inline Place place_of(const int* ids, std::int64_t n, int shift, std::int64_t first) {
    Place p;
    const int lane = int(threadIdx.x);
    p.row = first + lane;
    p.there = p.row < n;
    p.digit = p.there ? ids[p.row] >> shift & (digits - 1) : 0;
    const unsigned peers = peers_of(p.digit, p.there);
    p.rank = __popc(peers & ((1u << lane) - 1));
    p.count = __popc(peers);
    return p;
}

// counts[digit * tiles + tile] = number of rows of the tile with this digit
__global__ void __launch_bounds__(32) count_digits_kernel(const int* ids, std::int64_t n, int shift, int* counts) {
    __shared__ int found[digits];
    const int lane = int(threadIdx.x);
    for (int d = lane; d < digits; d += 32) found[d] = 0;
    __syncwarp();
    const std::int64_t begin = std::int64_t(blockIdx.x) * rows_per_tile;
    for (int i = 0; i < rows_per_tile; i += 32) {
        const Place p = place_of(ids, n, shift, begin + i);
        if (p.there && p.rank == 0) found[p.digit] += p.count;
        __syncwarp();
    }
    for (int d = lane; d < digits; d += 32) counts[std::int64_t(d) * gridDim.x + blockIdx.x] = found[d];
}

// Replaces each of the n counts by the sum of all counts before it.
__global__ void __launch_bounds__(scan_block) scan_kernel(int* counts, std::int64_t n) {
    __shared__ int of_warps[32];
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    int before = 0;
    for (std::int64_t begin = 0; begin < n; begin += scan_block) {
        const std::int64_t i = begin + threadIdx.x;
        const int own = i < n ? counts[i] : 0;
        int sum = own;
        for (int d = 1; d < 32; d *= 2) {
            const int left = __shfl_up_sync(0xffffffffu, sum, d);
            if (lane >= d) sum += left;
        }
        if (lane == 31) of_warps[warp] = sum;
        __syncthreads();
        int all = 0, of_warps_before = 0;
        for (int w = 0; w < 32; w++) {
            if (w == warp) of_warps_before = all;
            all += of_warps[w];
        }
        if (i < n) counts[i] = before + of_warps_before + sum - own;
        before += all;
        __syncthreads();
    }
}

// Copies ids and rows to sorted_ids and sorted_rows, ordered by the digit that begins at bit `shift`. `counts` are
// the positions from scan_kernel. If `rows` is null, the rows are 0, 1, 2, ...
__global__ void __launch_bounds__(32) scatter_kernel(const int* ids, const int* rows, std::int64_t n, int shift,
                                                     const int* counts, int* sorted_ids, int* sorted_rows) {
    __shared__ int next[digits];
    const int lane = int(threadIdx.x);
    for (int d = lane; d < digits; d += 32) next[d] = counts[std::int64_t(d) * gridDim.x + blockIdx.x];
    __syncwarp();
    const std::int64_t begin = std::int64_t(blockIdx.x) * rows_per_tile;
    for (int i = 0; i < rows_per_tile; i += 32) {
        const Place p = place_of(ids, n, shift, begin + i);
        if (p.there) {
            const int to = next[p.digit] + p.rank;
            sorted_ids[to] = ids[p.row];
            sorted_rows[to] = rows ? rows[p.row] : int(p.row);
        }
        __syncwarp();
        if (p.there && p.rank == 0) next[p.digit] += p.count;
        __syncwarp();
    }
}

struct Sorted {
    const int *ids, *rows;
};

// Returns the ids in ascending order, and the row that each id comes from. ids(n) must be in [0, V).
Sorted sort(const int* ids, std::int64_t n, std::int64_t V) {
    const std::int64_t tiles = (n + rows_per_tile - 1) / rows_per_tile;
    int* counts = workspace<Counts, int>(tiles * digits);
    int *all_ids = workspace<Ids, int>(2 * n), *all_rows = workspace<Rows, int>(2 * n);
    Sorted from{ids, nullptr};
    int pass = 0;
    do {
        int *to_ids = all_ids + pass % 2 * n, *to_rows = all_rows + pass % 2 * n;
        const int shift = pass * digit_bits;
        launch<count_digits_kernel>(unsigned(tiles), 32, 0, from.ids, n, shift, counts);
        launch<scan_kernel>(1, scan_block, 0, counts, tiles * digits);
        launch<scatter_kernel>(unsigned(tiles), 32, 0, from.ids, from.rows, n, shift, counts, to_ids, to_rows);
        from = {to_ids, to_rows};
        pass++;
    } while ((V - 1) >> (pass * digit_bits) > 0);
    return from;
}

// Sets starts[v] to the number of sorted ids below v, which is the index of the first id equal to v, if there is one.
struct Start {
    const int* ids;
    std::int64_t n;
    int* starts;
    HD void operator()(std::int64_t v) const { starts[v] = int(count_below(ids, n, v)); }
};

// Computes row v of dw, the sum of the rows of dy with id v. A warp sums only 32 columns, so that several warps share
// the work of a frequent token.
template <class S>
struct SumRows {
    const S* dy;
    const int *starts, *rows;
    float* dw;
    bool add;
    int C, parts;
    HD void operator()(WarpLanes lanes, std::int64_t item) const {
        const std::int64_t v = item / parts;
        const int first_column = int(item % parts) * 32, begin = starts[v], end = starts[v + 1];
        each(lanes, C - first_column < 32 ? C - first_column : 32, [&](int i) {
            const int c = first_column + i;
            float sum = 0;
            for (int k = begin; k < end; k++) {
                const float x = float(dy[std::int64_t(rows[k]) * C + c]);
                sum = k == begin ? x : sum + x;
            }
            if (begin < end || !add) put(dw[v * C + c], sum, add);
        });
    }
};

}  // namespace

void embedding_backward(View dy, Ints ids, Grad dw) {
    if (!dw) return;
    expect_rows("embedding backward", "id", ids, dw.view);
    const std::int64_t V = dw.view.rows(), n = ids.count;
    const int C = int(dw.view.columns()), parts = (C + 31) / 32;
    const Sorted sorted = n > 0 ? sort(ids.data, n, V) : Sorted{};
    int* starts = workspace<Starts, int>(V + 1);
    for_each_point(V + 1, Start{sorted.ids, n, starts});
    for_type(dy.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(V * parts, SumRows<S>{dy.as<S>(), starts, sorted.rows, dw.view.as<float>(), dw.add, C, parts});
    });
}

}  // namespace masquerade::DEVICE

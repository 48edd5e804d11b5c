// SPDX-License-Identifier: MIT
// The backward of embedding, whose forward is in engine/ops/rows.cpp. It sums the gradients of rows with the same id.
// It first sorts the rows by id with a stable sort, so that each sum runs in row order, as on the CPU. The sums
// therefore have the same bits as on the CPU.
#include "engine/ops/check.h"
#include "engine/ops/cuda/packet.cuh"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

constexpr int digit_bits = 8, digits = 1 << digit_bits, sort_warps = 32, warps_of_sums = 8;

struct Ids {};
struct Rows {};

// Returns a mask of those lanes of the warp that have a row (`there`) and whose digit (8 bits of an id) equals the
// digit of the calling lane.
__device__ inline unsigned peers_of(int digit, bool there) {
    unsigned peers = __ballot_sync(0xffffffffu, there);
    for (int bit = 0; bit < digit_bits; bit++) {
        const bool one = digit >> bit & 1;
        const unsigned ones = __ballot_sync(0xffffffffu, one);
        peers &= one ? ones : ~ones;
    }
    return peers;
}

// The row of one lane, when a warp reads 32 rows. `digit`: the 8 bits of the row's id by which the rows are being
// sorted. `there`: whether the row exists. `rank`: how many earlier rows of the 32 have the same digit. `count`: how
// many rows of the 32 have this digit.
struct Place {
    bool there;
    int id, digit, rank, count;
};
__device__ inline Place place_of(const int* ids, int row, int end, int shift) {
    Place p;
    p.there = row < end;
    p.id = p.there ? ids[row] : 0;
    p.digit = p.id >> shift & (digits - 1);
    const unsigned peers = peers_of(p.digit, p.there);
    p.rank = __popc(peers & ((1u << threadIdx.x % 32) - 1));
    p.count = __popc(peers);
    return p;
}

// Sorts n ids and notes the row that each id comes from. It is a radix sort by digits of 8 bits, from the lowest digit
// to the highest, in one CUDA block. Each warp owns a range of rows. For each digit, the warps count how often each
// value of the digit occurs in their ranges; the block turns the counts into positions; and the warps move every row to
// its position, 32 rows at a time and in order, so that rows with the same digit keep their order. sorted_ids(2n) and
// sorted_rows(2n) have two halves; pass k, which sorts by digit k, writes half k mod 2.
__global__ void __launch_bounds__(32 * sort_warps)
    sort_kernel(const int* ids, int n, int passes, int* sorted_ids, int* sorted_rows) {
    __shared__ int next[sort_warps][digits], before[digits];
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int each = (n + 32 * sort_warps - 1) / (32 * sort_warps) * 32, begin = warp * each;
    const int end = begin + each < n ? begin + each : n, *rows = nullptr;
    for (int pass = 0; pass < passes; pass++) {
        const int shift = pass * digit_bits;
        for (int d = lane; d < digits; d += 32) next[warp][d] = 0;
        __syncwarp();
        for (int first = begin; first < end; first += 32) {
            const Place p = place_of(ids, first + lane, end, shift);
            if (p.there && p.rank == 0) next[warp][p.digit] += p.count;
            __syncwarp();
        }
        __syncthreads();
        if (warp < digits / 32) {  // one thread for each value of the digit
            int sum = 0;
            for (int w = 0; w < sort_warps; w++) {
                const int own = next[w][threadIdx.x];
                next[w][threadIdx.x] = sum;
                sum += own;
            }
            before[threadIdx.x] = sum;
        }
        __syncthreads();
        int of_lower_digits = 0;
        for (int d = lane; warp == 0 && d < digits; d += 32) {
            const int own = before[d];
            int sum = own;
            for (int k = 1; k < 32; k *= 2) {
                const int left = __shfl_up_sync(0xffffffffu, sum, k);
                if (lane >= k) sum += left;
            }
            before[d] = of_lower_digits + sum - own;
            of_lower_digits += __shfl_sync(0xffffffffu, sum, 31);
        }
        __syncthreads();
        int *to_ids = sorted_ids + pass % 2 * n, *to_rows = sorted_rows + pass % 2 * n;
        for (int first = begin; first < end; first += 32) {
            const Place p = place_of(ids, first + lane, end, shift);
            if (p.there) {
                const int to = before[p.digit] + next[warp][p.digit] + p.rank;
                to_ids[to] = p.id;
                to_rows[to] = rows ? rows[first + lane] : first + lane;
            }
            __syncwarp();
            if (p.there && p.rank == 0) next[warp][p.digit] += p.count;
            __syncwarp();
        }
        __syncthreads();
        ids = to_ids, rows = to_rows;
    }
}

// Adds `count` rows of dy to the sums of the n columns from c on, one row after another. Lane first + i passes the
// index of the i-th of these rows as `row`.
template <int count, class S, int n>
__device__ void add_rows(const S* dy, int C, int c, int row, int first, float (&sum)[n]) {
    float x[count][n];
#pragma unroll
    for (int i = 0; i < count; i++)
        read_numbers(dy + std::int64_t(__shfl_sync(0xffffffffu, row, first + i)) * C + c, x[i]);
#pragma unroll
    for (int i = 0; i < count; i++)
#pragma unroll
        for (int k = 0; k < n; k++) sum[k] += x[i][k];
}

// Computes rows of dw, the sums of the rows of dy with the same id. A warp belongs to one of the sorted rows. If this
// row is the first one with its id, the warp sums all rows with the id, n columns per lane; otherwise it does nothing.
template <int n, class S>
__global__ void __launch_bounds__(32 * warps_of_sums, 2)
    sum_rows_kernel(const S* dy, const int* ids, const int* rows, int count, int C, float* dw, bool add) {
    constexpr int at_once = 16;  // number of rows that are read before the first one is added
    const int lane = int(threadIdx.x) % 32, c = (int(blockIdx.y) * 32 + lane) * n, column = c < C ? c : 0;
    const int first = int(blockIdx.x) * warps_of_sums + int(threadIdx.x) / 32;
    if (first >= count) return;
    const int id = ids[first];
    if (first > 0 && ids[first - 1] == id) return;
    float sum[n];
    for (int k = 0; k < n; k++) sum[k] = -0.0f;  // adding x to -0 gives x, also if x is -0
    for (int i = first + lane, found = 32; found == 32; i += 32) {
        const bool same = i < count && ids[i] == id;
        const int row = same ? rows[i] : 0;
        found = __popc(__ballot_sync(0xffffffffu, same));
        int k = 0;
        for (; k + at_once <= found; k += at_once) add_rows<at_once>(dy, C, column, row, k, sum);
        for (; k < found; k++) add_rows<1>(dy, C, column, row, k, sum);
    }
    if (c >= C) return;
    float* to = dw + std::int64_t(id) * C + c;
    float old[n];
    if (add) {
        read_numbers(to, old);
        for (int k = 0; k < n; k++) sum[k] += old[k];
    }
    write_numbers(to, sum);
}

struct Zero {
    HD float operator()(std::int64_t) const { return 0; }
};

template <int n, class S>
void launch_sums(const S* dy, const int* ids, const int* rows, int count, const Grad& dw) {
    const int C = int(dw.view.columns());
    const dim3 blocks(unsigned(count + warps_of_sums - 1) / warps_of_sums, unsigned(C + 32 * n - 1) / (32 * n));
    launch<sum_rows_kernel<n, S>>(blocks, 32 * warps_of_sums, 0, dy, ids, rows, count, C, dw.view.as<float>(), dw.add);
}

}  // namespace

void embedding_backward(View dy, Ints ids, Grad dw) {
    if (!dw) return;
    expect_rows("embedding backward", "id", ids, dw.view);
    const std::int64_t V = dw.view.rows(), C = dw.view.columns();
    const int n = int(ids.count);
    if (!dw.add) store_points<float>(dw, Zero{});
    if (n == 0) return;
    int *sorted_ids = workspace<Ids, int>(2 * n), *sorted_rows = workspace<Rows, int>(2 * n), passes = 1;
    while ((V - 1) >> (passes * digit_bits) > 0) passes++;
    launch<sort_kernel>(1, 32 * sort_warps, 0, ids.data, n, passes, sorted_ids, sorted_rows);
    const int last = (passes - 1) % 2 * n;
    for_type(dy.dtype, [&]<class S, class A>(S, A) {
        const S* from = dy.as<S>();
        const bool packed = rows_in_packets(from, C) && rows_in_packets(dw.view.as<float>(), C);
        const auto launch_one = packed ? launch_sums<per_packet<S>, S> : launch_sums<1, S>;
        launch_one(from, sorted_ids + last, sorted_rows + last, n, dw);
    });
}

}  // namespace masquerade::DEVICE

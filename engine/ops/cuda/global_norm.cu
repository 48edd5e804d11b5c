// SPDX-License-Identifier: MIT
// Computes the norm of a buffer of gradients. The result has the same bits as on the CPU. The squares of each chunk of
// 4096 numbers are summed in float, then the sums of the chunks are added in double. Both sums are computed in the same
// order as by sum(OneLane) (math/lanes.h), the function that the CPU uses.
#include "engine/math/scalar.h"
#include "engine/ops/check.h"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

constexpr std::int64_t chunk = 4096;
constexpr int at_once = 1024, fetchers = at_once / per_packet<float>;

struct Sums {};

// A warp sums the squares of eight chunks, with four lanes for each. On the CPU, sum(OneLane) (math/lanes.h) computes
// 16 partial sums. Here, each lane reads four neighbouring numbers at a time and computes four of the partial sums. The
// lanes then add them in the same pairs as sum(OneLane).
struct SumOfSquares {
    static constexpr int chunks_of_warp = 8, lanes_of_chunk = 4, group = 4;
    const float* g;
    bool aligned;  // whether g begins at a multiple of 16 bytes
    std::int64_t n, chunks;
    float* sums;
    __device__ void operator()(WarpLanes lanes, std::int64_t warp) const {
        const int lane = lane_of(lanes) % lanes_of_chunk;
        const std::int64_t k = chunks_of_warp * warp + lane_of(lanes) / lanes_of_chunk, begin = k * chunk;
        const std::int64_t end = k >= chunks ? begin : begin + chunk < n ? begin + chunk : n;
        float part[group] = {};
#pragma unroll 4
        for (std::int64_t i = begin + lane * group; i < end; i += lanes_of_chunk * group) {
            float x[group] = {};
            if (aligned && i + group <= end)
                read_numbers(g + i, x);
            else
                for (int j = 0; j < group && i + j < end; j++) x[j] = g[i + j];
            for (int j = 0; j < group; j++) part[j] += x[j] * x[j];
        }
        for (int half = lanes_of_chunk / 2; half > 0; half /= 2)
            for (int j = 0; j < group; j++) part[j] += lane_xor(part[j], half);
        part[0] += part[2], part[1] += part[3];
        if (lane == 0 && k < chunks) sums[k] = part[0] + part[1];
    }
};

// Adds the sums of the chunks and takes the square root. All threads of the block load the sums, four each, because
// many threads load faster than few; `sums` has room for a multiple of four. Each of the first 16 threads computes one
// of the 16 partial sums that sum(OneLane) computes on the CPU (math/lanes.h). The first warp then adds the partial
// sums in the same pairs as sum(OneLane).
__global__ void __launch_bounds__(fetchers) root_kernel(const float* sums, std::int64_t chunks, float* norm) {
    __shared__ float fetched[at_once];
    constexpr int each = per_packet<float>;
    const int thread = int(threadIdx.x);
    double part = 0;
    for (std::int64_t begin = 0; begin < chunks; begin += at_once) {
        const int count = chunks - begin < at_once ? int(chunks - begin) : at_once;
        if (thread * each < count) {
            float x[each];
            read_numbers(sums + begin + thread * each, x);
            for (int k = 0; k < each; k++) fetched[thread * each + k] = x[k];
        }
        __syncthreads();
        for (int i = thread; thread < 16 && i < count; i += 16) part += double(fetched[i]);
        __syncthreads();
    }
    if (thread >= 32) return;
    for (int half = 8; half > 0; half /= 2) part += lane_xor(part, half);
    if (thread == 0) *norm = float(sqrt_of(part));
}

}  // namespace

void global_norm(View g, View norm) {
    const std::int64_t n = g.count(), chunks = (n + chunk - 1) / chunk;
    float* sums = workspace<Sums>((chunks + 3) / 4 * 4);
    constexpr int together = SumOfSquares::chunks_of_warp;
    const bool aligned = is_aligned(g.data, sizeof(Packet));
    for_each_row((chunks + together - 1) / together, SumOfSquares{g.as<float>(), aligned, n, chunks, sums});
    launch<root_kernel>(1, fetchers, 0, sums, chunks, norm.as<float>());
}

}  // namespace masquerade::DEVICE

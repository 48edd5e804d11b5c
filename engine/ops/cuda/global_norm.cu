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
constexpr int at_once = 1024;

struct Sums {};

// A warp sums the squares of two chunks, with 16 lanes for each. On the CPU, sum(OneLane) (math/lanes.h) computes 16
// partial sums. Here, each lane computes one of them. The lanes then add them in the same pairs as sum(OneLane).
struct SumOfSquares {
    const float* g;
    std::int64_t n, chunks;
    float* sums;
    HD void operator()(WarpLanes lanes, std::int64_t pair) const {
        const std::int64_t k = 2 * pair + lane_of(lanes) / 16, begin = k * chunk;
        const std::int64_t end = k >= chunks ? begin : begin + chunk < n ? begin + chunk : n;
        float part = 0;
        for (std::int64_t i = begin + lane_of(lanes) % 16; i < end; i += 16) part += g[i] * g[i];
        for (int half = 8; half > 0; half /= 2) part += lane_xor(part, half);
        if (lane_of(lanes) % 16 == 0 && k < chunks) sums[k] = part;
    }
};

// Adds the sums of the chunks and takes the square root. All threads of the block load the sums, because many threads
// load faster than few. Each of the first 16 threads computes one of the 16 partial sums that sum(OneLane) computes on
// the CPU (math/lanes.h). The first warp then adds the partial sums in the same pairs as sum(OneLane).
__global__ void __launch_bounds__(at_once) root_kernel(const float* sums, std::int64_t chunks, float* norm) {
    __shared__ float fetched[at_once];
    const int thread = int(threadIdx.x);
    double part = 0;
    for (std::int64_t begin = 0; begin < chunks; begin += at_once) {
        const int count = chunks - begin < at_once ? int(chunks - begin) : at_once;
        if (thread < count) fetched[thread] = sums[begin + thread];
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
    float* sums = workspace<Sums>(chunks);
    for_each_row((chunks + 1) / 2, SumOfSquares{g.as<float>(), n, chunks, sums});
    launch<root_kernel>(1, at_once, 0, sums, chunks, norm.as<float>());
}

}  // namespace masquerade::DEVICE

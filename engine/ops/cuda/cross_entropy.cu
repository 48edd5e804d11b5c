// SPDX-License-Identifier: MIT
// Cross-entropy over logits = h w^T + b: loss and gradients in one pass. The rows of h are processed in blocks of
// rows, as on the CPU. For each block, one matrix product computes the logits, one kernel computes the losses and the
// gradients of the logits, and two products compute the gradients of h and w. Logits are therefore computed only
// once, and only the logits of one block are in memory at a time.
#include "engine/math/matrix.h"
#include "engine/ops/check_products.h"
#include "engine/ops/cuda/gemm.h"
#include "engine/ops/cuda/logits.h"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

using Label = SmoothLabel<float>;

struct Logits {};
struct RoundedLogits {};

// Returns the gradient of a logit: (exp(logit - lse) - q) weight, where q is the probability that the smoothed label
// gives to this token. Returns 0 if the weight is 0, even if a logit is NaN.
HD float dlogit(float logit, float lse, const Label& label, float weight, bool at_target) {
    const float p = exp_of(logit - lse);
    return weight == 0 ? 0.0f : (p - (at_target ? label.target : label.other)) * weight;
}

// Computes one row per CUDA block. If dlogits is not null, the gradients of the logits are written to it. If S is
// float, dlogits may be the same memory as `logits`. Element i of targets, weights, loss and lse belongs to row i of
// `logits`.
template <class S>
__global__ void __launch_bounds__(1024)
    loss_kernel(const float* logits, int V, const int* targets, const float* weights, Label label, float* loss,
                float* lse, S* dlogits) {
    __shared__ float tops[32], sums[32], logit_sums[32];
    const bool smooth = label.other > 0;
    const std::int64_t row = blockIdx.x;
    const int thread = int(threadIdx.x), threads = int(blockDim.x), target = targets[row];
    const float *x = logits + row * V, at_target = x[target];
    Peak peak{-INFINITY, 0};
    float logit_sum = 0;
    for (int i = thread; i < V; i += threads) {
        peak = with(peak, x[i]);
        if (smooth) logit_sum += x[i];
    }
    for (int d = 16; d > 0; d /= 2) {
        peak = both(peak, {lane_xor(peak.top, d), lane_xor(peak.sum, d)});
        if (smooth) logit_sum += lane_xor(logit_sum, d);
    }
    if (thread % 32 == 0)
        tops[thread / 32] = peak.top, sums[thread / 32] = peak.sum, logit_sums[thread / 32] = logit_sum;
    __syncthreads();
    peak = {tops[0], sums[0]}, logit_sum = logit_sums[0];
    for (int warp = 1; warp < threads / 32; warp++)
        peak = both(peak, {tops[warp], sums[warp]}), logit_sum += logit_sums[warp];
    const float log_sum = peak.top + log_of(peak.sum);
    if (thread == 0) {
        const float of_target = log_sum - (label.target - label.other) * at_target;
        lse[row] = log_sum, loss[row] = smooth ? of_target - label.other * logit_sum : of_target;
    }
    if (!dlogits) return;
    const float weight = weights[row];
    for (int i = thread; i < V; i += threads)
        dlogits[row * V + i] = S(dlogit(x[i], log_sum, label, weight, i == target));
}

// Computes the gradient of one logit in float. b1, the gradient of the bias, is summed from these numbers if dlogits is
// rounded to bf16.
struct Unrounded {
    const float *logits, *lse, *weights;
    const int* targets;
    Label label;
    std::int64_t V;
    HD float operator()(std::int64_t row, int v) const {
        return dlogit(logits[row * V + v], lse[row], label, weights[row], v == targets[row]);
    }
};

struct Block {
    View h, w, b;
    const int* targets;
    const float* weights;
    Label label;
    float *loss, *lse;
    View h1, w1, b1;
    bool first;  // the first block stores the gradients of w and b in w1 and b1, later blocks add to w1 and b1
};

template <class S>
void run_block(const Block& block) {
    const std::int64_t rows = block.h.rows(), C = block.h.columns(), V = block.w.rows();
    float* logits = workspace<Logits>(rows * V);
    gemm(rows, V, C, factor(block.h), transposed(factor(block.w)), {logits, DType::f32}, block.b.as<float>());

    const bool shares = block.h1 || block.w1 || block.b1;
    S* dlogits = nullptr;
    if constexpr (sizeof(S) == sizeof(float))
        dlogits = shares ? logits : nullptr;
    else
        dlogits = shares ? workspace<RoundedLogits, S>(rows * V) : nullptr;
    // One thread per logit of a row, rounded up to whole warps, but at most 1024. With 1024 threads per row, so few
    // rows are computed at the same time that the kernel's second loop over a row still finds the logits in a cache.
    const unsigned threads = unsigned(V >= 1024 ? 1024 : (V + 31) / 32 * 32);
    if (rows > 0)
        launch<loss_kernel<S>>(unsigned(rows), threads, 0, logits, int(V), block.targets, block.weights, block.label,
                               block.loss, block.lse, dlogits);

    const View d{dlogits, dtype_of<S>, block.h.device, {rows, V}, "dlogits"};
    if (block.h1) gemm(rows, C, V, factor(d), factor(block.w), product(block.h1));
    if (block.w1) gemm(V, C, rows, transposed(factor(d)), factor(block.h), product(block.w1, !block.first));
    if (!block.b1) return;
    if constexpr (sizeof(S) == sizeof(float))
        column_sums(d, {block.b1, !block.first});
    else
        launch_column_sums(rows, int(V), Unrounded{logits, block.lse, block.weights, block.targets, block.label, V},
                           block.b1.as<float>(), !block.first);
}

}  // namespace

void cross_entropy_forward(View h, View w, View b, Ints targets, View weights, double smoothing, View loss, View lse,
                           View total, View h1, View w1, View b1) {
    check_cross_entropy(h, w, targets, weights, smoothing, total || h1 || w1 || b1);
    std::int64_t n = 0;
    do {  // runs once even if h has no rows, because zeros must be stored in w1 and b1
        const std::int64_t rows = rows_of_next_block(h.rows() - n, w.rows());
        Block block{rows_of(h, n, rows),
                    w,
                    b,
                    targets.data + n,
                    weights ? weights.as<float>() + n : nullptr,
                    Label(smoothing, w.rows()),
                    loss.as<float>() + n,
                    lse.as<float>() + n,
                    h1,
                    w1,
                    b1,
                    n == 0};
        if (h1) block.h1 = rows_of(h1, n, rows);
        for_type(h.dtype, [&]<class S, class A>(Types<S, A>) { run_block<S>(block); });
        n += rows;
    } while (n < h.rows());
    if (total) weighted_sum_forward(loss, weights, total);
}

}  // namespace masquerade::DEVICE

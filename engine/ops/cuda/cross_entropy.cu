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
struct BiasParts {};

// A thread reads this many logits of a row at a time. In the workspaces, the rows of the logits and of their gradients
// begin step_of(V) numbers apart, so that every group of logits is aligned. Up to seven unused numbers follow each row.
constexpr int group = 8;
std::int64_t step_of(std::int64_t V) { return (V + group - 1) / group * group; }

// Each CUDA block computes lse and loss of one row, from the logits and the target of the row.
__global__ void __launch_bounds__(1024)
    loss_kernel(const float* logits, int V, int step, const int* targets, Label label, float* loss, float* lse) {
    __shared__ float tops[32], sums[32], logit_sums[32];
    const bool smooth = label.other > 0;
    const int row = int(blockIdx.x), thread = int(threadIdx.x), threads = int(blockDim.x);
    const int lane = thread % 32, warp = thread / 32, whole = V / group * group;
    const float* x = logits + std::int64_t(row) * step;
    Peak peak;
    float logit_sum = 0;
    for (int i = group * thread; i < whole; i += group * threads) {
        float some[group];
        read_numbers(x + i, some);
        peak = with(peak, some);
        for (int k = 0; smooth && k < group; k++) logit_sum += some[k];
    }
    if (whole + thread < V) {
        const float last = x[whole + thread];
        peak = with(peak, {last}), logit_sum += last;
    }
    peak = peak_of_lanes(peak), logit_sum = sum_of_lanes(logit_sum);
    if (lane == 0) tops[warp] = peak.top, sums[warp] = peak.sum, logit_sums[warp] = logit_sum;
    __syncthreads();
    if (warp > 0) return;
    const bool there = lane < threads / 32;  // lane i takes the results of warp i
    peak = peak_of_lanes(there ? Peak{tops[lane], sums[lane]} : Peak{});
    logit_sum = sum_of_lanes(there ? logit_sums[lane] : 0.0f);
    if (lane > 0) return;
    const float log_sum = peak.top + log_of(peak.sum);
    const float of_target = log_sum - (label.target - label.other) * x[targets[row]];
    lse[row] = log_sum, loss[row] = smooth ? of_target - label.other * logit_sum : of_target;
}

// A thread of gradient_kernel computes one group of `group` neighbouring columns, in each of rows_at_once rows.
constexpr int rows_at_once = 32, gradient_threads = 128;

// Computes the gradients of the logits: (exp(logit - lse) - q) weight, where q is the probability that the smoothed
// label gives to the token. If the weight is 0, the gradients are 0, even if a logit is NaN. If S is float, dlogits may
// be the same memory as `logits`. If `parts` is not null, row k of `parts` receives the column sums of the gradients
// over rows_at_once rows, beginning at row k * rows_at_once. The gradients are summed before they are rounded to S.
template <class S>
__global__ void __launch_bounds__(gradient_threads)
    gradient_kernel(const float* logits, int rows, int step, const int* targets, const float* weights, Label label,
                    const float* lse, S* dlogits, float* parts) {
    struct OfRow {
        float weight, log_sum;
        int target;
    };
    __shared__ OfRow of_rows[rows_at_once];
    const int thread = int(threadIdx.x), first = int(blockIdx.x) * rows_at_once,
              c = (int(blockIdx.y) * gradient_threads + thread) * group;
    if (thread < rows_at_once && first + thread < rows)
        of_rows[thread] = {weights[first + thread], lse[first + thread], targets[first + thread]};
    __syncthreads();
    if (c >= step) return;
    const float* x = logits + std::int64_t(first) * step + c;
    S* to = dlogits + std::int64_t(first) * step + c;
    float sums[group] = {};
    for (int row = first; row < first + rows_at_once && row < rows; row++, x += step, to += step) {
        const auto [weight, log_sum, of_row] = of_rows[row - first];
        const int target = of_row - c;
        float d[group] = {};
        if (weight != 0) {
            read_numbers(x, d);
            for (int k = 0; k < group; k++) d[k] = exp_or_zero(d[k] - log_sum) - label.other;
            if (target >= 0 && target < group)
                for (int k = 0; k < group; k++) d[k] -= k == target ? label.target - label.other : 0.0f;
            for (int k = 0; k < group; k++) d[k] *= weight;
        }
        write_numbers(to, d);
        for (int k = 0; k < group; k++) sums[k] += d[k];
    }
    if (parts) write_numbers(parts + std::int64_t(blockIdx.x) * step + c, sums);
}

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
    const std::int64_t rows = block.h.rows(), C = block.h.columns(), V = block.w.rows(), step = step_of(V);
    float* logits = workspace<Logits>(rows * step);
    gemm(rows, V, C, factor(block.h), transposed(factor(block.w)), {logits, DType::f32, false, step}, block.b);

    // A row gets one warp for every 256 groups of 8 logits, so that a thread reads at most eight groups. A row gets at
    // most 32 warps; in longer rows, a thread reads more groups.
    const std::int64_t warps = std::min<std::int64_t>(32, (step / group + 255) / 256);
    if (rows > 0)
        launch<loss_kernel>(unsigned(rows), unsigned(32 * warps), 0, logits, int(V), int(step), block.targets,
                            block.label, block.loss, block.lse);
    if (!block.h1 && !block.w1 && !block.b1) return;

    S* dlogits;
    if constexpr (sizeof(S) == sizeof(float))
        dlogits = logits;
    else
        dlogits = workspace<RoundedLogits, S>(rows * step);
    const std::int64_t chunks = (rows + rows_at_once - 1) / rows_at_once;
    float* parts = block.b1 ? workspace<BiasParts>(chunks * step) : nullptr;
    const auto across = unsigned((step / group + gradient_threads - 1) / gradient_threads);
    if (rows > 0)
        launch<gradient_kernel<S>>(dim3(unsigned(chunks), across), gradient_threads, 0, logits, int(rows), int(step),
                                   block.targets, block.weights, block.label, block.lse, dlogits, parts);
    if (block.b1) add_chunks({{parts, chunks, int(step), int(V), block.b1.as<float>(), !block.first}}, false);

    const DeviceFactor d{dlogits, dtype_of<S>, false, step};
    if (block.h1) gemm(rows, C, V, d, factor(block.w), product(block.h1));
    if (block.w1) gemm(V, C, rows, transposed(d), factor(block.h), product(block.w1, !block.first));
}

}  // namespace

void cross_entropy_forward(View h, View w, View b, Ints targets, View weights, double smoothing, View loss, View lse,
                           View total, View h1, View w1, View b1) {
    check_cross_entropy(h, w, targets, weights, smoothing, total || h1 || w1 || b1);
    std::int64_t n = 0;
    do {  // runs once even if h has no rows, because zeros must be stored in w1 and b1
        const std::int64_t rows = rows_of_next_block(h.rows() - n, step_of(w.rows()));
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
        for_type(h.dtype, [&]<class S, class A>(S, A) { run_block<S>(block); });
        n += rows;
    } while (n < h.rows());
    if (total) weighted_sum_forward(loss, weights, total);
}

}  // namespace masquerade::DEVICE

// SPDX-License-Identifier: MIT
// Cross-entropy over logits = h w^T + b: loss and gradients in one pass. The rows of h are processed in blocks of
// rows. For each block, one matrix product computes the logits, one pass over each row replaces the logits by their
// gradients, and two products compute the gradients of h and w. Logits are therefore computed only once, and only the
// logits of one block are in memory at a time. The loss of a row does not depend on other rows.
#include "engine/math/matrix.h"
#include "engine/ops/check_products.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/logits.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/reference.h"
#include "engine/ops/cpu/workspace.h"
#include "engine/ops/table.h"

#include <algorithm>
#include <cstring>

namespace masquerade::cpu {
namespace {

// Number of rows of a chunk; one thread computes a chunk. The gradients of the logits are summed for each chunk first;
// then the sums of the chunks are added in order. The bits of b1, the gradient of the bias, therefore do not depend on
// the number of threads.
constexpr std::int64_t chunk_rows = 16;

using Label = SmoothLabel<float>;

struct Logits {};
struct ColumnSums {};

// Returns the sum of x, from 64 running sums. The order of the additions depends only on `count`.
WHOLE_VECTORS float sum_of(const float* x, int count) {
    constexpr int sums = 64;
    float s[sums] = {}, total = 0;
    int i = 0;
    for (; i + sums <= count; i += sums) {
#pragma omp simd
        for (int j = 0; j < sums; j++) s[j] += x[i + j];
    }
    for (; i < count; i++) s[i % sums] += x[i];
    for (float each : s) total += each;
    return total;
}

inline void store(float& to, float x) { to = x; }
inline void store(bfloat16& to, float x) { to.bits = bfloat16(x).bits; }

// Computes to[i] = (exp(x[i] - lse) - q) weight, the gradients of the logits x. q is the probability that the smoothed
// label gives to every token other than the target; the caller computes the gradient of the target's logit.
// Exponentials below e^-87 count as 0. Also adds the gradients to `columns`, before they are rounded to S. x and `to`
// may be the same memory.
template <class S>
WHOLE_VECTORS void weigh_probabilities(const float* x, int count, float lse, float q, float weight, S* to,
                                       float* columns) {
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float p = choose(x[i] - lse < -87.0f, 0.0f, exp_from_tiny(x[i] - lse));
        float dlogit = (p - q) * weight;
        store(to[i], dlogit);
        columns[i] += dlogit;
    }
}

// Replaces the logits of a row by their gradients, dlogits = (exp(logit - lse) - q) weight, where q is the probability
// that the smoothed label gives to the token. The dlogits are stored as numbers of type S, beginning at the address of
// the row's logits. They are also added to `columns`, the column sums that give the gradient of the bias. If the weight
// is 0, the dlogits are 0, even if a logit is NaN.
template <class S>
void turn_into_dlogits(float* logits, int count, int target, const Label& label, float lse, float weight,
                       float* columns) {
    S* dlogits = reinterpret_cast<S*>(logits);
    if (weight == 0) {
        std::memset(logits, 0, count * sizeof(S));
        return;
    }
    float at_target = (exp_of(logits[target] - lse) - label.target) * weight;
    float column = columns[target];
    if constexpr (std::is_same_v<S, float>) {
        weigh_probabilities(logits, count, lse, label.other, weight, dlogits, columns);
    } else {
        constexpr int at_once = 1024;
        S rounded[at_once];
        for (int i = 0; i < count; i += at_once) {
            int words = std::min(at_once, count - i);
            weigh_probabilities(logits + i, words, lse, label.other, weight, rounded, columns + i);
            std::memcpy(dlogits + i, rounded, words * sizeof(S));
        }
    }
    S rounded(at_target);
    std::memcpy(dlogits + target, &rounded, sizeof rounded);
    columns[target] = column + at_target;
}

// Adds the rows of sums(chunks,V) to to(V), in order. If `add` is not set, to(V) is first set to 0.
void add_chunks(const float* sums, std::int64_t chunks, std::int64_t V, float* to, bool add) {
    parallel_for(V, 4096, [&](std::int64_t begin, std::int64_t end) {
        if (!add) std::fill(to + begin, to + end, 0.0f);
        for (std::int64_t chunk = 0; chunk < chunks; chunk++)
            for (std::int64_t v = begin; v < end; v++) to[v] += sums[chunk * V + v];
    });
}

// The gradients of the total loss with respect to h, w and b. Each may be absent.
struct Shares {
    View h1, w1, b1;
    explicit operator bool() const { return h1 || w1 || b1; }
};

// Computes the losses and the gradients for one block of rows. The first block stores the gradients of w and b in
// shares.w1 and shares.b1; later blocks add to shares.w1 and shares.b1.
template <class S>
void run_block(const View& h, const View& w, const View& b, const int* targets, const float* weights,
               const Label& label, float* loss, float* lse, const Shares& shares, bool first) {
    const std::int64_t rows = h.rows(), C = h.columns(), V = w.rows();
    const std::int64_t chunks = (rows + chunk_rows - 1) / chunk_rows;
    float* logits = workspace<Logits>(rows * V);
    gemm(rows, V, C, factor(h), transposed(factor(w)), {logits, DType::f32, V, false, b.as<float>()});

    float* sums = shares ? workspace<ColumnSums>(chunks * V) : nullptr;
    parallel_each(chunks, [&](std::int64_t chunk) {
        float* columns = shares ? sums + chunk * V : nullptr;
        if (shares) std::fill(columns, columns + V, 0.0f);
        for (std::int64_t r = chunk * chunk_rows; r < std::min(rows, (chunk + 1) * chunk_rows); r++) {
            float* x = logits + r * V;
            lse[r] = log_sum_exp(OneLane{}, x, int(V));
            loss[r] = lse[r] - (label.target - label.other) * x[targets[r]];
            if (label.smooth()) loss[r] -= label.other * sum_of(x, int(V));
            if (shares) turn_into_dlogits<S>(x, int(V), targets[r], label, lse[r], weights[r], columns);
        }
    });

    const Factor dlogits{logits, dtype_of<S>, V * std::int64_t(sizeof(float) / sizeof(S)), 1};
    if (shares.h1) gemm(rows, C, V, dlogits, factor(w), product(shares.h1));
    if (shares.w1) gemm(V, C, rows, transposed(dlogits), factor(h), product(shares.w1, !first));
    if (shares.b1) add_chunks(sums, chunks, V, shares.b1.as<float>(), !first);
}

void forward_fast(const View& h, const View& w, const View& b, Ints targets, const float* weights, double smoothing,
                  float* loss, float* lse, const Shares& shares) {
    const Label label(smoothing, w.rows());
    std::int64_t n = 0;
    do {  // runs once even if h has no rows, because zeros must be stored in w1 and b1
        const std::int64_t rows = rows_of_next_block(h.rows() - n, w.rows());
        Shares block = shares;
        if (block.h1) block.h1 = rows_of(shares.h1, n, rows);
        auto run = h.dtype == DType::bf16 ? run_block<bfloat16> : run_block<float>;
        run(rows_of(h, n, rows), w, b, targets.data + n, weights ? weights + n : nullptr, label, loss + n, lse + n,
            block, n == 0);
        n += rows;
    } while (n < h.rows());
}

template <class A>
void forward_reference(View h, View w, View b, Ints targets, const A* weights, double smoothing, A* loss, A* lse,
                       const Shares& shares) {
    const std::int64_t N = h.rows(), C = h.columns(), V = w.rows();
    const SmoothLabel<A> label(smoothing, V);
    parallel_each(N, [&](std::int64_t n) {
        cross_entropy_reference(C, V, h.as<A>() + n * C, w.as<A>(), b.as<A>(), targets[n], label, loss + n, lse + n);
    });
    if (!shares) return;
    for (const View& share : {shares.h1, shares.w1, shares.b1})
        if (share) std::fill_n(share.as<A>(), share.count(), A(0));
    for (std::int64_t n = 0; n < N; n++)
        cross_entropy_gradient_reference(C, V, weights[n], h.as<A>() + n * C, w.as<A>(), b.as<A>(), targets[n], label,
                                         lse[n], shares.h1 ? shares.h1.as<A>() + n * C : nullptr, shares.w1.as<A>(),
                                         shares.b1.as<A>());
}

}  // namespace

void cross_entropy_forward(View h, View w, View b, Ints targets, View weights, double smoothing, View loss, View lse,
                           View total, View h1, View w1, View b1) {
    check_cross_entropy(h, w, targets, weights, smoothing, total || h1 || w1 || b1);
    const Shares shares{h1, w1, b1};
    if (runs_fast(h.dtype))
        forward_fast(h, w, b, targets, weights.as<float>(), smoothing, loss.as<float>(), lse.as<float>(), shares);
    else
        for_reference_type(h.dtype, [&]<class A>(A) {
            forward_reference(h, w, b, targets, weights.as<A>(), smoothing, loss.as<A>(), lse.as<A>(), shares);
        });
    if (total) weighted_sum_forward(loss, weights, total);
}

}  // namespace masquerade::cpu

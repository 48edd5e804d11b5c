// SPDX-License-Identifier: MIT
// Cross-entropy over logits = h w^T + b that are never stored whole: they are made, and made again for
// backward, in blocks of rows and words. A row's loss depends on no other row.
#include "engine/math/matrix.h"
#include "engine/ops/check.h"
#include "engine/ops/cpu/column_sum.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/reference.h"
#include "engine/ops/cpu/workspace.h"
#include "engine/ops/table.h"

#include <algorithm>

namespace masquerade::cpu {
namespace {

// Multiples of gemm_depth, so that dh and dw are the sums one whole product would make.
constexpr std::int64_t block_rows = 3 * gemm_depth, block_words = 4 * gemm_depth;
constexpr std::int64_t row_grain = 16;

struct Logits {};
struct Statistics {};
struct DhSums {};
struct DwSums {};

View rows_of(View v, std::int64_t begin, std::int64_t count) {
    v.data = static_cast<char*>(v.data) + std::size_t(begin * v.columns()) * bytes_of(v.dtype);
    v.shape = {count, v.columns()};
    return v;
}

// The logits of all rows of h for the words [begin, begin + count): (rows, count), float.
View make_logits(const View& h, const View& w, const View& b, std::int64_t begin, std::int64_t count) {
    float* room = workspace<Logits>(std::size_t(h.rows() * count));
    View logits{room, DType::f32, Device::cpu, {h.rows(), count}, "logits"};
    Product to = product(logits);
    if (b) to.bias = b.as<float>() + begin;
    gemm(h.rows(), count, h.columns(), factor(h), transposed(factor(rows_of(w, begin, count))), to);
    return logits;
}

// What a row knows after the words so far: their largest logit, the sum of exp(logit - largest), the target's
// logit.
struct RowStatistics {
    float top, sum, target;
};

void add_words(RowStatistics& row, const float* logits, int count) {
    float top = row.top;
#pragma omp simd reduction(max : top)
    for (int i = 0; i < count; i++) top = logits[i] > top ? logits[i] : top;
    float from = top == -INFINITY ? 0.0f : top;  // nothing allowed so far: exp(-inf) = 0, not NaN
    float fresh = sum(OneLane{}, count, [&](int i) { return exp_of(logits[i] - from); });
    row.sum = row.sum * exp_of(row.top - from) + fresh;
    row.top = top;
}

void forward_rows(const View& h, const View& w, const View& b, const int* targets, float* loss, float* lse) {
    std::int64_t rows = h.rows(), V = w.rows();
    RowStatistics* statistics = workspace<Statistics, RowStatistics>(std::size_t(rows));
    std::fill(statistics, statistics + rows, RowStatistics{-INFINITY, 0, 0});
    for (std::int64_t v0 = 0; v0 < V; v0 += block_words) {
        std::int64_t count = std::min(block_words, V - v0);
        const float* logits = make_logits(h, w, b, v0, count).as<float>();
        parallel_for(rows, row_grain, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; r++) {
                add_words(statistics[r], logits + r * count, int(count));
                std::int64_t target = targets[r] - v0;
                if (target >= 0 && target < count) statistics[r].target = logits[r * count + target];
            }
        });
    }
    for (std::int64_t r = 0; r < rows; r++) {
        lse[r] = statistics[r].top + log_of(statistics[r].sum);
        loss[r] = lse[r] - statistics[r].target;
    }
}

// logits := dlogits = (exp(logit - lse) - [target]) dloss, and zeros in a row of no weight, whatever its
// logits are.
void turn_into_gradient(float* logits, int count, std::int64_t target, float lse, float dloss) {
    if (dloss == 0) {
        std::fill(logits, logits + count, 0.0f);
        return;
    }
    bool here = target >= 0 && target < count;
    float at_target = here ? (exp_of(logits[target] - lse) - 1) * dloss : 0;
#pragma omp simd
    for (int i = 0; i < count; i++) logits[i] = exp_of(logits[i] - lse) * dloss;
    if (here) logits[target] = at_target;
}

// Sums of several blocks go to a float matrix: the gradient itself, or for bf16 working memory that is
// rounded once.
template <class Tag>
struct BlockSums {
    Grad to;
    View sums;

    explicit BlockSums(const Grad& grad) : to(grad), sums(grad.view) {
        if (!to || to.view.dtype == DType::f32) return;
        sums.dtype = DType::f32;
        sums.data = workspace<Tag>(std::size_t(sums.count()));
    }
    bool add(bool first) const { return !first || (to.add && to.view.dtype == DType::f32); }
    void finish() const {
        if (!to || to.view.dtype == DType::f32) return;
        const float* from = sums.as<float>();
        bfloat16* rounded = to.view.as<bfloat16>();
        parallel_for(sums.count(), 16384, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; i++) put(rounded[i], from[i], to.add);
        });
    }
};

void backward_fast(const float* dloss, View h, View w, View b, Ints targets, const float* lse, Grad dh,
                   Grad dw, Grad db) {
    std::int64_t N = h.rows(), C = h.columns(), V = w.rows();
    BlockSums<DhSums> dh_sums(dh);
    for (std::int64_t v0 = 0; v0 < V; v0 += block_words) {
        std::int64_t words = std::min(block_words, V - v0);
        View w_block = rows_of(w, v0, words);
        BlockSums<DwSums> dw_sums(dw ? Grad{rows_of(dw.view, v0, words), dw.add} : Grad{});
        // once even where N = 0: zeros must be stored
        for (std::int64_t n0 = 0; n0 == 0 || n0 < N; n0 += block_rows) {
            std::int64_t rows = std::min(block_rows, N - n0);
            View h_block = rows_of(h, n0, rows), dlogits = make_logits(h_block, w, b, v0, words);
            float* values = dlogits.as<float>();
            parallel_for(rows, row_grain, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t r = begin; r < end; r++)
                    turn_into_gradient(values + r * words, int(words), targets[n0 + r] - v0, lse[n0 + r],
                                       dloss[n0 + r]);
            });
            if (dh)
                gemm(rows, C, words, factor(dlogits), factor(w_block),
                     product(rows_of(dh_sums.sums, n0, rows), dh_sums.add(v0 == 0)));
            if (dw)
                gemm(words, C, rows, transposed(factor(dlogits)), factor(h_block),
                     product(dw_sums.sums, dw_sums.add(n0 == 0)));
            if (db) {
                View part = db.view;
                part.data = db.view.as<float>() + v0;
                part.shape = {words};
                column_sums(dlogits, {part, db.add || n0 > 0});
            }
        }
        dw_sums.finish();
    }
    dh_sums.finish();
}

template <class A>
void zero_unless_added(const Grad& g) {
    if (g && !g.add) std::fill_n(g.view.as<A>(), g.view.count(), A(0));
}

template <class A>
void backward_reference(View dloss, View h, View w, View b, Ints targets, View lse, Grad dh, Grad dw,
                        Grad db) {
    std::int64_t C = h.columns();
    for (const Grad& g : {dh, dw, db}) zero_unless_added<A>(g);
    for (std::int64_t n = 0; n < h.rows(); n++)
        cross_entropy_backward_reference(
            C, w.rows(), dloss.as<A>()[n], h.as<A>() + n * C, w.as<A>(), b.as<A>(), targets[n],
            lse.as<A>()[n], dh ? dh.view.as<A>() + n * C : nullptr, dw.view.as<A>(), db.view.as<A>());
}

void check(const char* op, const View& h, const View& w, const View& b, const Ints& targets) {
    if (w.columns() != h.columns() || w.dtype != h.dtype)
        throw Error(text(op, ": ", seen("h", h), " but ", seen("w", w), "; last sizes and types must agree"));
    if (b) expect_shape(op, "b", b, {w.rows()}, arithmetic_of(h.dtype));
    expect_count(op, "targets", targets, h.rows());
    for (std::int64_t n = 0; n < targets.count; n++)
        if (targets[n] < 0 || targets[n] >= w.rows())
            throw Error(text(op, ": the target of row ", n, " of ", h.path, " is ", targets[n],
                             ", expected in [0, ", w.rows(), "), the rows of w ", w.path));
}

}  // namespace

void cross_entropy_forward(View h, View w, View b, Ints targets, View loss, View lse) {
    check("cross_entropy", h, w, b, targets);
    expect_shape("cross_entropy", "loss", loss, {h.rows()}, arithmetic_of(h.dtype));
    expect_shape("cross_entropy", "lse", lse, {h.rows()}, arithmetic_of(h.dtype));

    std::int64_t N = h.rows(), C = h.columns(), V = w.rows();
    if (runs_fast(h.dtype)) {
        for (std::int64_t n = 0; n < N; n += block_rows)
            forward_rows(rows_of(h, n, std::min(block_rows, N - n)), w, b, targets.data + n,
                         loss.as<float>() + n, lse.as<float>() + n);
        return;
    }
    for_reference_type(h.dtype, [&](auto zero) {
        using A = decltype(zero);
        parallel_for(N, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t n = begin; n < end; n++)
                cross_entropy_reference(C, V, h.as<A>() + n * C, w.as<A>(), b.as<A>(), targets[n],
                                        loss.as<A>() + n, lse.as<A>() + n);
        });
    });
}

void cross_entropy_backward(View dloss, View h, View w, View b, Ints targets, View lse, Grad dh, Grad dw,
                            Grad db) {
    check("cross_entropy backward", h, w, b, targets);
    DType arithmetic = arithmetic_of(h.dtype);
    expect_shape("cross_entropy backward", "dloss", dloss, {h.rows()}, arithmetic);
    expect_shape("cross_entropy backward", "lse", lse, {h.rows()}, arithmetic);
    expect_grad("cross_entropy backward", "dh", dh, h);
    expect_weight_grad("cross_entropy backward", "dw", dw, w);
    if (db) expect_shape("cross_entropy backward", "db", db.view, {w.rows()}, arithmetic);

    if (runs_fast(h.dtype))
        return backward_fast(dloss.as<float>(), h, w, b, targets, lse.as<float>(), dh, dw, db);
    for_reference_type(h.dtype, [&](auto zero) {
        backward_reference<decltype(zero)>(dloss, h, w, b, targets, lse, dh, dw, db);
    });
}

}  // namespace masquerade::cpu

// SPDX-License-Identifier: MIT
// gemm(), the matrix product of the CUDA ops. It chooses between multiply() (cuBLASLt) and tiled_multiply() (the
// engine's own kernel). It also handles what neither of them accepts: K = 0, factors of different types, a product of
// f32 factors that is stored in bf16, and an f32 bias that is added to a bf16 result.
#include "engine/ops/cuda/gemm.h"

#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Types that name the workspaces (workspace.cuh) for float copies of A, B and C, for the bias rounded to bf16, and for
// the gradient of the bias before it is added.
struct WideA {};
struct WideB {};
struct WideC {};
struct RoundedBias {};

// Sets to = from or, if `add` is set, adds `from` to `to`. If the bias is not null, it is added, too. A row has n
// numbers. The rows of `from` begin from_step numbers apart, and the rows of `to` begin to_step numbers apart. A null
// `from` stands for zeros, the product of factors with K = 0.
template <class From, class To>
struct Copy {
    const From* from;
    std::int64_t from_step;
    const float* bias;
    To* to;
    std::int64_t to_step, n;
    bool add;
    HD void operator()(std::int64_t i) const {
        const std::int64_t row = i / n, column = i % n;
        const float x = from ? float(from[row * from_step + column]) : 0.0f;
        put(to[row * to_step + column], bias ? x + bias[column] : x, add);
    }
};

// Sets c (m,n) = from or, if c.add is set, adds `from` to c. If the bias is not null, it is added, too. A null `from`
// stands for zeros.
void copy(std::int64_t m, std::int64_t n, const float* from, const float* bias, DeviceProduct c) {
    const std::int64_t step = row_step(c, n);
    if (c.dtype == DType::f32)
        for_each_point(m * n, Copy<float, float>{from, n, bias, static_cast<float*>(c.data), step, n, c.add});
    else
        for_each_point(m * n, Copy<float, bfloat16>{from, n, bias, static_cast<bfloat16*>(c.data), step, n, c.add});
}

void expect_known(DType type) {
    if (type != DType::f32 && type != DType::bf16) throw Error("no CUDA form for ", name_of(type));
}

// Returns the factor f (rows, columns) in f32. If f is bf16, its numbers are converted into a workspace.
template <class Tag>
DeviceFactor widened(DeviceFactor f, std::int64_t rows, std::int64_t columns) {
    if (f.dtype == DType::f32) return f;
    float* wide = workspace<Tag>(rows * columns);
    const std::int64_t n = f.transposed ? rows : columns;
    for_each_point(rows * columns, Copy<bfloat16, float>{static_cast<const bfloat16*>(f.data), row_step(f, n), nullptr,
                                                         wide, n, n, false});
    return {wide, DType::f32, f.transposed};
}

// If ProductRule::deterministic is set, or if cuBLASLt cannot compute the product, the engine's own kernel computes it;
// otherwise cuBLASLt does. If cuBLASLt cannot be opened or has no kernel for this shape, multiply() does nothing and
// returns false.
void run_product(const Multiplication& p) {
    if (product_rule().deterministic || !multiply(p)) tiled_multiply(p);
}

// Returns the bias(N) of a bf16 result, rounded to bf16: its copy in bf16 or, if it has none, a workspace.
const void* rounded(const View& bias, std::int64_t n) {
    if (bias.rounded) return bias.rounded;
    View to = bias;
    to.dtype = DType::bf16, to.data = workspace<RoundedBias, bfloat16>(n);
    convert_forward(bias, to);
    return to.data;
}

// Computes the column sums of x(M,O) in float, in the same order as on the CPU. Stores them in sums(O) or, if sums.add
// is set, adds them to sums(O).
void column_sums(std::int64_t M, const DeviceFactor& x, const Grad& sums) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        const int O = int(sums.view.count());
        const MatrixTerm<S, A, 1, Element> term{{static_cast<const S*>(x.data)}, row_step(x, O), Element()};
        launch_column_sums(M, O, ColumnSum(sums, term));
    });
}

// Lets cuBLASLt compute dw = dy^T x and db = the column sums of dy in one product. Returns false, and computes nothing,
// if dw or db is absent, if ProductRule::deterministic is set, or if cuBLASLt cannot compute this product.
bool weight_gradients_at_once(const DeviceFactor& dy, const View& x, const Grad& dw, const Grad& db) {
    if (!dw || !db || product_rule().deterministic || dy.dtype != x.dtype) return false;
    const std::int64_t O = dw.view.rows(), I = x.columns(), M = x.rows();
    if (O <= 0 || I <= 0 || M <= 0) return false;
    float *to = db.view.as<float>(), *sums = db.add ? memory_of_chunks(O, db.late) : to;
    if (!multiply({O, I, M, transposed(dy), factor(x), product(dw.view, dw.add), nullptr, sums})) return false;
    if (db.add) add_chunks({{sums, 1, int(O), int(O), to, true}}, db.late);
    return true;
}

}  // namespace

ProductRule& product_rule() {
    static ProductRule rule;
    return rule;
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, DeviceFactor a, DeviceFactor b, DeviceProduct c,
          const View& bias) {
    for (DType type : {a.dtype, b.dtype, c.dtype}) expect_known(type);
    if (m <= 0 || n <= 0) return;
    if (k <= 0) return copy(m, n, nullptr, bias.as<float>(), c);
    if (a.dtype != b.dtype) a = widened<WideA>(a, m, k), b = widened<WideB>(b, k, n);
    // Multiplication (multiply.h) does not allow a bf16 C with f32 factors. The product is therefore computed in f32,
    // and then rounded.
    if (c.dtype == DType::bf16 && a.dtype == DType::f32) {
        float* wide = workspace<WideC>(m * n);
        run_product({m, n, k, a, b, {wide, DType::f32, false}});
        return copy(m, n, wide, bias.as<float>(), c);
    }
    run_product({m, n, k, a, b, c, bias && c.dtype == DType::bf16 ? rounded(bias, n) : bias.data});
}

void weight_gradients(const DeviceFactor& dy, const View& x, const Grad& dw, const Grad& db) {
    if (weight_gradients_at_once(dy, x, dw, db)) return;
    if (dw) gemm(dw.view.rows(), x.columns(), x.rows(), transposed(dy), factor(x), product(dw.view, dw.add));
    if (db) column_sums(x.rows(), dy, db);
}

}  // namespace masquerade::DEVICE

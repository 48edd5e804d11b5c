// SPDX-License-Identifier: MIT
// The layer between the ops and the products: who multiplies, empty sums, factors of two types, and a product that must
// not be rounded before its bias is added.
#include "engine/ops/cuda/gemm.h"

#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

struct WideA {};
struct WideB {};
struct WideC {};

// C (+)= bias, the product of no columns and no rows.
template <class S>
struct Empty {
    S* c;
    const float* bias;
    std::int64_t n;
    bool add;
    HD void operator()(std::int64_t i) const { put(c[i], bias ? bias[i % n] : 0.0f, add); }
};

// to[i] = from[i] (+ bias), stored or added.
template <class From, class To>
struct Copy {
    const From* from;
    const float* bias;
    To* to;
    std::int64_t n;
    bool add;
    HD void operator()(std::int64_t i) const {
        put(to[i], bias ? float(from[i]) + bias[i % n] : float(from[i]), add);
    }
};

template <class From, class To>
void copy(std::int64_t count, const From* from, To* to) {
    for_each_point(count, Copy<From, To>{from, nullptr, to, 1, false});
}

void expect_known(DType type) {
    if (type != DType::f32 && type != DType::bf16) throw Error(text("no CUDA form for ", name_of(type)));
}

// The factor as f32, in memory of its own where it is bf16.
template <class Tag>
DeviceFactor widened(DeviceFactor f, std::int64_t count) {
    if (f.dtype == DType::f32) return f;
    float* wide = workspace<Tag>(count);
    copy(count, static_cast<const bfloat16*>(f.data), wide);
    return {wide, DType::f32, f.transposed};
}

template <class S>
struct Column {
    const S* x;
    std::int64_t columns;
    HD float operator()(std::int64_t row, int c) const { return float(x[row * columns + c]); }
};

void make_product(const Multiplication& p) {
    if (product_rule().deterministic || !multiply(p)) tiled_multiply(p);
}

}  // namespace

ProductRule& product_rule() {
    static ProductRule rule;
    return rule;
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, DeviceFactor a, DeviceFactor b, DeviceProduct c,
          const float* bias) {
    for (DType type : {a.dtype, b.dtype, c.dtype}) expect_known(type);
    if (m <= 0 || n <= 0) return;
    if (k <= 0) {
        if (c.dtype == DType::f32)
            for_each_point(m * n, Empty<float>{static_cast<float*>(c.data), bias, n, c.add});
        else
            for_each_point(m * n, Empty<bfloat16>{static_cast<bfloat16*>(c.data), bias, n, c.add});
        return;
    }
    if (a.dtype != b.dtype) a = widened<WideA>(a, m * k), b = widened<WideB>(b, k * n);
    if (c.dtype == DType::bf16 && (bias || a.dtype == DType::f32)) {
        float* wide = workspace<WideC>(m * n);
        make_product({m, n, k, a, b, {wide, DType::f32, false}, nullptr});
        for_each_point(m * n, Copy<float, bfloat16>{wide, bias, static_cast<bfloat16*>(c.data), n, c.add});
        return;
    }
    make_product({m, n, k, a, b, c, bias});
}

void column_sums(const View& x, const Grad& sums) {
    for_type(x.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        launch_column_sums(x.rows(), int(x.columns()), Column<S>{x.as<S>(), x.columns()},
                           sums.view.as<float>(), sums.add);
    });
}

}  // namespace masquerade::DEVICE

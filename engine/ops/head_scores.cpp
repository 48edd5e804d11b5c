// SPDX-License-Identifier: MIT
// The op head_scores, computed as one matrix product per head. Each factor of this product consists of the columns of
// one head in a wider matrix.
#include "engine/math/point.h"
#include "engine/ops/launch.h"
#ifdef HAS_WARPS
#include "engine/ops/cuda/gemm.h"
#else
#include "engine/ops/cpu/gemm.h"
#endif

namespace masquerade::DEVICE {
namespace {

struct Vectors {};

// Returns the view x with `data` pointing to this column of row 0. The shape stays the same, because gemm() takes the
// distance between two rows from the shape.
View at(View x, std::int64_t column) {
    x.data = x.at(column);
    return x;
}

}  // namespace

void head_scores_forward(View x, View p, int heads, double scale, View y) {
    const std::int64_t N = x.rows(), R = p.rows(), D = x.columns() / heads;
    for (int h = 0; h < heads; h++)
        gemm(N, R, D, factor(at(x, h * D)), transposed(factor(at(p, h * D))), product(at(y, h * R)));
    for_type(y.dtype, [&]<class S, class A>(S, A) { store_points<A, times<A>>({y}, A(scale), y); });
}

void head_scores_backward(View dy, View x, View p, int heads, double scale, Grad dx, Grad dp) {
    const std::int64_t N = x.rows(), R = p.rows(), D = x.columns() / heads;
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        // `numbers` first holds p times `scale`. Later, it holds dp before the multiplication by `scale`.
        A* numbers = workspace<Vectors, A>(p.count());
        const View beside{numbers, dy.dtype, p.device, p.shape, p.path};
        if (dx) store_points<A>({beside}, point_call<S, times<A>>(A(scale), p));
        for (int h = 0; dx && h < heads; h++)
            gemm(N, D, R, factor(at(dy, h * R)), factor(at(beside, h * D)), product(at(dx.view, h * D), dx.add));
        if (!dp) return;
        for (int h = 0; h < heads; h++)
            gemm(R, D, N, transposed(factor(at(dy, h * R))), factor(at(x, h * D)), product(at(beside, h * D)));
        const auto scaled = point_call<A, times<A>>(A(scale), beside);
        if (dp.view.dtype == dy.dtype)
            store_points<A>(dp, scaled);
        else
            store_points<S>(dp, scaled);
    });
}

}  // namespace masquerade::DEVICE

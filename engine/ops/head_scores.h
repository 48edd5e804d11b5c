// SPDX-License-Identifier: MIT
// The op head_scores as one matrix product per head. The columns of a head are a part of a wider matrix. Each device
// has a source file that includes this header; before that, it must define Count, the size type of its workspace, and
// multiply_part(), which multiplies two factors into a product.
#pragma once
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

struct Vectors {};

// Returns x with `data` moved to this column. The shape stays the same, because it gives the distance of the rows.
View at(View x, std::int64_t column) {
    x.data = static_cast<char*>(x.data) + column * std::int64_t(bytes_of(x.dtype));
    return x;
}

void check(const char* op, const View& x, const View& p, int heads, const char* role, const View& y) {
    if (heads < 1 || x.columns() % heads || p.columns() != x.columns() || p.dtype != x.dtype)
        throw Error(text(op, ": ", seen("x", x), ", ", seen("p", p), ", ", heads,
                         " heads; expected (N,C) and (R,C) of one type, C a multiple of the heads"));
    expect_shape(op, role, y, {x.rows(), heads * p.rows()}, arithmetic_of(x.dtype));
}

}  // namespace

void head_scores_forward(View x, View p, int heads, double scale, View y) {
    check("head_scores", x, p, heads, "y", y);
    const std::int64_t N = x.rows(), R = p.rows(), D = x.columns() / heads;
    for (int h = 0; h < heads; h++)
        multiply_part(N, R, D, factor(at(x, h * D)), transposed(factor(at(p, h * D))), product(at(y, h * R)));
    for_type(y.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(y.count(), y.as<A>(), false, point_call<times<A>>(A(scale), by_point<A>(y)));
    });
}

void head_scores_backward(View dy, View x, View p, int heads, double scale, Grad dx, Grad dp) {
    const char* op = "head_scores backward";
    check(op, x, p, heads, "dy", dy);
    expect_grad(op, "dx", dx, x);
    if (dp) expect_shape(op, "dp", dp.view, p.shape, dp.view.dtype == p.dtype ? p.dtype : dy.dtype);
    const std::int64_t N = x.rows(), R = p.rows(), D = x.columns() / heads;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        // `numbers` first holds p times `scale`. Later, it holds dp before the multiplication by `scale`.
        A* numbers = workspace<Vectors, A>(Count(p.count()));
        const View beside{numbers, dy.dtype, p.device, p.shape, p.path};
        if (dx) store_points(p.count(), numbers, false, point_call<times<A>>(A(scale), by_point<S>(p)));
        for (int h = 0; dx && h < heads; h++)
            multiply_part(N, D, R, factor(at(dy, h * R)), factor(at(beside, h * D)),
                          product(at(dx.view, h * D), dx.add));
        if (!dp) return;
        for (int h = 0; h < heads; h++)
            multiply_part(R, D, N, transposed(factor(at(dy, h * R))), factor(at(x, h * D)), product(at(beside, h * D)));
        const auto scaled = point_call<times<A>>(A(scale), by_point<A>(beside));
        if (dp.view.dtype == dy.dtype)
            store_points(p.count(), dp.view.as<A>(), dp.add, scaled);
        else
            store_points(p.count(), dp.view.as<S>(), dp.add, scaled);
    });
}

}  // namespace masquerade::DEVICE

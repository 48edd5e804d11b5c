// SPDX-License-Identifier: MIT
// y = x w^T + b. Forward and backward are the matrix product in its three orders; f64 and c128 run the
// definition.
#include "engine/math/matrix.h"
#include "engine/ops/check.h"
#include "engine/ops/cpu/column_sum.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/reference.h"
#include "engine/ops/table.h"

namespace masquerade::cpu {

void linear_forward(View x, View w, View b, View y) {
    std::int64_t M = x.rows(), I = x.columns(), O = w.rows();
    if (w.columns() != I || w.dtype != x.dtype)
        throw Error(
            text("linear: ", seen("x", x), " but ", seen("w", w), "; last sizes and types must agree"));
    if (y.rows() != M || y.columns() != O || (y.dtype != x.dtype && y.dtype != arithmetic_of(x.dtype)))
        expect_shape("linear", "y", y, {M, O}, x.dtype);
    if (b) expect_shape("linear", "b", b, {O}, arithmetic_of(x.dtype));

    if (runs_fast(x.dtype)) {
        Product to = product(y);
        to.bias = b.as<float>();
        return gemm(M, O, I, factor(x), transposed(factor(w)), to);
    }
    for_reference_type(x.dtype, [&](auto zero) {
        using A = decltype(zero);
        const A *px = x.as<A>(), *pw = w.as<A>(), *pb = b.as<A>();
        A* py = y.as<A>();
        parallel_for(M, 16, [&](std::int64_t begin, std::int64_t end) {
            linear_reference(end - begin, I, O, px + begin * I, pw, pb, py + begin * O);
        });
    });
}

void linear_backward(View dy, View x, View w, Grad dx, Grad dw, Grad db) {
    std::int64_t M = x.rows(), I = x.columns(), O = w.rows();
    bool typed = (dy.dtype == x.dtype || dy.dtype == arithmetic_of(x.dtype)) && w.dtype == x.dtype;
    if (dy.rows() != M || dy.columns() != O || w.columns() != I || !typed)
        throw Error(text("linear backward: ", seen("dy", dy), ", ", seen("x", x), ", ", seen("w", w),
                         "; expected (M,O), (M,I), (O,I) of one type"));
    expect_grad("linear backward", "dx", dx, x);
    expect_weight_grad("linear backward", "dw", dw, w);
    if (db) expect_shape("linear backward", "db", db.view, {O}, arithmetic_of(x.dtype));

    if (runs_fast(x.dtype)) {
        if (dx) gemm(M, I, O, factor(dy), factor(w), product(dx.view, dx.add));
        if (dw) gemm(O, I, M, transposed(factor(dy)), factor(x), product(dw.view, dw.add));
        if (db) column_sums(dy, db);
        return;
    }
    for_reference_type(x.dtype, [&](auto zero) {
        using A = decltype(zero);
        if (dx) linear_dx_reference<A, A>(M, I, O, dy.as<A>(), w.as<A>(), dx.view.as<A>(), dx.add);
        if (dw) linear_dw_reference<A, A>(M, I, O, dy.as<A>(), x.as<A>(), dw.view.as<A>(), dw.add);
        if (db) column_sums_reference(M, O, dy.as<A>(), db.view.as<A>(), db.add);
    });
}

}  // namespace masquerade::cpu

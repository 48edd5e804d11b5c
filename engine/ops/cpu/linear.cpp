// SPDX-License-Identifier: MIT
// The linear layer y = x w^T + b: alone, followed or preceded by a gelu, or followed by the rotary embedding. The
// forward computes x w^T; the backward computes dx = dy w and dw = dy^T x.
#include "engine/math/matrix.h"
#include "engine/math/point.h"
#include "engine/math/row.h"
#include "engine/ops/check_products.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/reference.h"
#include "engine/ops/launch.h"

#include <algorithm>

namespace masquerade::cpu {
namespace {

void forward(const View& x, const View& w, const View& b, const View& y, const Epilogue& then) {
    Product to = product(y);
    to.bias = b.data;
    to.then = then;
    gemm(x.rows(), w.rows(), x.columns(), factor(x), transposed(factor(w)), to);
}

// Computes to = f(u, to) for each element of an area of the matrices u and `to`, which have the same shape.
template <class S, class F>
void each_point(const View& u, const View& to, const Area& at, F f) {
    for (std::int64_t m = at.m0; m < at.m1; m++) {
        const S* from = u.as<S>() + m * u.columns() + at.n0;
        S* row = to.as<S>() + m * u.columns() + at.n0;
        store(OneLane{}, at.n1 - at.n0, row, false, [=](std::int64_t i) { return f(float(from[i]), row[i]); });
    }
}
template <class F>
void each_point(const View& u, const View& to, const Area& at, F f) {
    u.dtype == DType::f32 ? each_point<float>(u, to, at, f) : each_point<bfloat16>(u, to, at, f);
}

// Applies the rotary embedding to an area of y, in place. Column at.n0 need not be the first column of a head.
template <class S>
void turn(const View& y, const Ints& positions, const View& rotary_table, const Area& at) {
    const std::int64_t D = rotary_table.columns();
    for (std::int64_t m = at.m0; m < at.m1; m++) {
        S* row = y.as<S>() + m * y.columns();
        const float* turn = rotary_table.as<float>() + positions[m] * D;
        for (std::int64_t n = at.n0, next; n < at.n1; n = next) {
            next = std::min(at.n1, n / D * D + D);
            rotary_pairs<S, float>(OneLane{}, row + n, turn + n % D, 1.0f, row + n, false, 1, int(next - n));
        }
    }
}

// Computes the column sums of x(M,O) in float. Stores them in `sums` or, if sums.add is true, adds them. The rows of
// each chunk of 64 are summed first, then the sums of the chunks are added in order.
template <class S>
void column_sums(const View& x, const Grad& sums) {
    for_each_row_and_sums(
        x.rows(), int(x.columns()), [](OneLane, std::int64_t) {}, ColumnSum(sums, matrix_term<S, float>(Element(), x)));
}

// Tag of the workspace (workspace.h) for da, the gradient of the output a of gelu. Only the backward needs da.
struct GeluOutputGrad {};

}  // namespace

void linear_forward(View x, View w, View b, View y) { forward(x, w, b, y, {}); }

void linear_gelu_forward(View x, View w, View b, GeluKind kind, View u, View a) {
    if (!runs_fast(x.dtype)) {
        forward(x, w, b, u, {});
        return gelu_forward(u, kind, a);
    }
    auto activate = [&](const Area& at) {
        if (kind == GeluKind::tanh)
            each_point(u, a, at, [](float v, auto) { return GeluTanh::value(v); });
        else
            each_point(u, a, at, [](float v, auto) { return Gelu::value(v); });
    };
    forward(x, w, b, u, Epilogue(activate, factor(a)));
}

void linear_backward(View dy, View x, View w, Grad dx, Grad dw, Grad db) {
    std::int64_t M = x.rows(), I = x.columns(), O = w.rows();
    if (dx) gemm(M, I, O, factor(dy), factor(w), product(dx.view, dx.add));
    if (dw) gemm(O, I, M, transposed(factor(dy)), factor(x), product(dw.view, dw.add));
    if (!db) return;
    if (runs_fast(x.dtype)) return dy.dtype == DType::bf16 ? column_sums<bfloat16>(dy, db) : column_sums<float>(dy, db);
    for_reference_type(x.dtype, [&]<class A>(A) { column_sums_reference(M, O, dy.as<A>(), db.as<A>(), db.add); });
}

void gelu_linear_backward(View dy, View u, View a, View w, GeluKind kind, Grad du, Grad dw, Grad db) {
    linear_backward(dy, a, w, {}, dw, db);
    if (!du) return;
    if (!runs_fast(u.dtype) || du.add) {
        View da = u;
        da.data = workspace<GeluOutputGrad, char>(u.bytes());
        linear_backward(dy, a, w, {da, false}, {}, {});
        return gelu_backward(da, u, kind, du);
    }
    auto slope = [&](const Area& at) {
        if (kind == GeluKind::tanh)
            each_point(u, du.view, at, [](float v, auto da) { return float(da) * GeluTanh::slope(v); });
        else
            each_point(u, du.view, at, [](float v, auto da) { return float(da) * Gelu::slope(v); });
    };
    Product to = product(du.view);
    to.then = Epilogue(slope, factor(u));
    gemm(u.rows(), u.columns(), w.rows(), factor(dy), factor(w), to);
}

void linear_rotary_forward(View x, View w, View b, Ints positions, View rotary_table, int columns, View y) {
    check_rotary(y, positions, rotary_table, columns);
    if (!runs_fast(y.dtype)) {
        forward(x, w, b, y, {});
        return rotary_forward(y, positions, rotary_table, columns, y);
    }
    auto turn_part = [&](const Area& at) {
        const Area turned{at.m0, at.m1, at.n0, std::min<std::int64_t>(at.n1, columns)};
        (y.dtype == DType::f32 ? turn<float> : turn<bfloat16>)(y, positions, rotary_table, turned);
    };
    forward(x, w, b, y, Epilogue(turn_part));
}

void query_key_value_forward(View x, View wq, View bq, View wkv, View bkv, View rotary_table, Ints positions,
                             int turned, View q, View kv) {
    linear_rotary_forward(x, wq, bq, positions, rotary_table, int(q.columns()), q);
    linear_rotary_forward(x, wkv, bkv, positions, rotary_table, turned, kv);
}

void query_key_value_backward(View dq, View dkv, View x, View wq, View wkv, View rotary_table, Ints positions,
                              int turned, Grad dx, Grad dwq, Grad dbq, Grad dwkv, Grad dbkv) {
    linear_rotary_backward(dq, x, wq, positions, rotary_table, int(dq.columns()), dx, dwq, dbq);
    linear_rotary_backward(dkv, x, wkv, positions, rotary_table, turned, {dx.view, true}, dwkv, dbkv);
}

}  // namespace masquerade::cpu

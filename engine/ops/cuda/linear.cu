// SPDX-License-Identifier: MIT
// The linear layer y = x w^T + b: alone, followed or preceded by a gelu, or followed by the rotary embedding. The
// forward computes x w^T; the backward computes dx = dy w and dw = dy^T x. Gelu and rotary embedding read the product
// from memory, where it is already rounded to the type of the tensor. The results are therefore rounded as on the CPU.
#include "engine/math/row.h"
#include "engine/ops/check_products.h"
#include "engine/ops/cuda/gemm.h"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Type that names the workspace (workspace.cuh) for da, the gradient of the output a of gelu. Only the backward needs
// da.
struct GeluOutputGrad {};

// Types that name the workspaces for q and kv side by side, before they are rotated, and for their gradients.
struct QueryKeyValue {};
struct QueryKeyValueGrad {};

// `both` holds a row of q (Q columns) and then a row of kv (K columns), not yet rotated. Rotates and separates them.
template <class S, class A, class Lanes>
HD void separate_row(Lanes lanes, Row<Lanes, const S> both, Row<Lanes, const A> turn, Row<Lanes, S> q, Row<Lanes, S> kv,
                     int turned, int D, int Q, int K) {
    rotary_row<S, A>(lanes, both, turn, A(1), q, false, Q, D, Q);
    rotary_row<S, A>(lanes, both + Q, turn, A(1), kv, false, turned, D, K);
}
// The backward of separate_row().
template <class S, class A, class Lanes>
HD void join_row(Lanes lanes, Row<Lanes, const S> dq, Row<Lanes, const S> dkv, Row<Lanes, const A> turn,
                 Row<Lanes, S> both, int turned, int D, int Q, int K) {
    rotary_row<S, A>(lanes, dq, turn, A(-1), both, false, Q, D, Q);
    rotary_row<S, A>(lanes, dkv, turn, A(-1), both + Q, false, turned, D, K);
}

// Sets `both` to a view of a and b, one after the other, and returns true if b follows a in memory or both are absent.
bool stacked(const View& a, const View& b, View& both) {
    both = a;
    both.shape = a.shape.rank > 1 ? Shape{a.rows() + b.rows(), a.columns()} : Shape{a.count() + b.count()};
    const auto follows = [&](const void* x, const void* y, DType type) {
        return x ? static_cast<const char*>(x) + a.count() * std::int64_t(bytes_of(type)) == y : !y;
    };
    return follows(a.data, b.data, a.dtype) && follows(a.rounded, b.rounded, DType::bf16);
}
bool stacked(const Grad& a, const Grad& b, Grad& both) {
    both.add = a.add, both.late = a.late && b.late;
    return stacked(a.view, b.view, both.view) && (!a || a.add == b.add);
}

}  // namespace

void linear_forward(View x, View w, View b, View y) {
    gemm(x.rows(), w.rows(), x.columns(), factor(x), transposed(factor(w)), product(y), b);
}

void linear_backward(View dy, View x, View w, Grad dx, Grad dw, Grad db) {
    if (dx) gemm(x.rows(), x.columns(), w.rows(), factor(dy), factor(w), product(dx.view, dx.add));
    weight_gradients(factor(dy), x, dw, db);
}

void linear_gelu_forward(View x, View w, View b, GeluKind kind, View u, View a) {
    linear_forward(x, w, b, u);
    gelu_forward(u, kind, a);
}

// The gradient of a = gelu(u) is da = dy w. If du.add is set, du already contains a gradient, so da is computed in a
// workspace. Otherwise da is computed in the memory of du.
void gelu_linear_backward(View dy, View u, View a, View w, GeluKind kind, Grad du, Grad dw, Grad db) {
    linear_backward(dy, a, w, {}, dw, db);
    if (!du) return;
    View da = du.view;
    if (du.add) da.data = workspace<GeluOutputGrad, char>(std::int64_t(u.bytes()));
    linear_backward(dy, a, w, {da, false}, {}, {});
    gelu_backward(da, u, kind, du);
}

void linear_rotary_forward(View x, View w, View b, Ints positions, View rotary_table, int columns, View y) {
    check_rotary(y, positions, rotary_table, columns);
    linear_forward(x, w, b, y);
    rotary_forward(y, positions, rotary_table, columns, y);
}

void query_key_value_forward(View x, View wq, View bq, View wkv, View bkv, View rotary_table, Ints positions,
                             int turned, View q, View kv) {
    View w, b, both = q;
    if (!stacked(wq, wkv, w) || !stacked(bq, bkv, b)) {
        linear_rotary_forward(x, wq, bq, positions, rotary_table, int(q.columns()), q);
        return linear_rotary_forward(x, wkv, bkv, positions, rotary_table, turned, kv);
    }
    check_rotary(q, positions, rotary_table, int(q.columns()));
    check_turned(kv, rotary_table, turned);
    both.shape = {x.rows(), w.rows()};
    both.data = workspace<QueryKeyValue, char>(std::int64_t(both.bytes()));
    linear_forward(x, w, b, both);
    const int D = int(rotary_table.columns()), Q = int(q.columns()), K = int(kv.columns());
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(x.rows(), in_packets<S>([&]<class Lanes>(Lanes) {
                         return row_call<separate_row<S, A, Lanes>>(both, chosen_row<A>(rotary_table, positions.data),
                                                                    q, kv, turned, D, Q, K);
                     }));
    });
}

void query_key_value_backward(View dq, View dkv, View x, View wq, View wkv, View rotary_table, Ints positions,
                              int turned, Grad dx, Grad dwq, Grad dbq, Grad dwkv, Grad dbkv) {
    View w, both = dq;
    if (!stacked(wq, wkv, w)) {
        linear_rotary_backward(dq, x, wq, positions, rotary_table, int(dq.columns()), dx, dwq, dbq);
        return linear_rotary_backward(dkv, x, wkv, positions, rotary_table, turned, {dx.view, true}, dwkv, dbkv);
    }
    check_rotary(dq, positions, rotary_table, int(dq.columns()));
    check_turned(dkv, rotary_table, turned);
    both.shape = {x.rows(), w.rows()};
    both.data = workspace<QueryKeyValueGrad, char>(std::int64_t(both.bytes()));
    const int D = int(rotary_table.columns()), Q = int(dq.columns()), K = int(dkv.columns());
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(x.rows(), in_packets<S>([&]<class Lanes>(Lanes) {
                         return row_call<join_row<S, A, Lanes>>(dq, dkv, chosen_row<A>(rotary_table, positions.data),
                                                                both, turned, D, Q, K);
                     }));
    });
    linear_backward(both, x, w, dx, {}, {});
    Grad dw, db;
    if (stacked(dwq, dwkv, dw) && stacked(dbq, dbkv, db)) return weight_gradients(factor(both), x, dw, db);
    // A part of the gradient is absent, or only one of the two must be added to a gradient from elsewhere.
    DeviceFactor columns = factor(both);
    weight_gradients(columns, x, dwq, dbq);
    columns.data = both.at(Q);
    weight_gradients(columns, x, dwkv, dbkv);
}

}  // namespace masquerade::DEVICE

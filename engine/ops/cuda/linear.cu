// SPDX-License-Identifier: MIT
// The linear layer y = x w^T + b: alone, followed or preceded by a gelu, or followed by the rotary embedding. The
// forward computes x w^T; the backward computes dx = dy w and dw = dy^T x. Gelu and rotary embedding read the product
// from memory, where it is already rounded to the type of the tensor. The results are therefore rounded as on the CPU.
#include "engine/ops/check_products.h"
#include "engine/ops/cuda/gemm.h"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Type that names the workspace (workspace.cuh) for da, the gradient of the output a of gelu. Only the backward needs
// da.
struct GeluOutputGrad {};

}  // namespace

void linear_forward(View x, View w, View b, View y) {
    gemm(x.rows(), w.rows(), x.columns(), factor(x), transposed(factor(w)), product(y), b);
}

void linear_backward(View dy, View x, View w, Grad dx, Grad dw, Grad db) {
    if (dx) gemm(x.rows(), x.columns(), w.rows(), factor(dy), factor(w), product(dx.view, dx.add));
    weight_gradients(dy, x, dw, db);
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

}  // namespace masquerade::DEVICE

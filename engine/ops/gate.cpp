// SPDX-License-Identifier: MIT
// The op glu, the gated linear unit.
#include "engine/math/gate.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

void glu_forward(View x, GateKind kind, View y) {
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const int F = int(y.columns());
        if (kind == GateKind::silu)
            for_each_row(y.rows(), row_call<glu_row<S, A, silu<A>, Lanes>>(x, y, F));
        else if (kind == GateKind::gelu)
            for_each_row(y.rows(), row_call<glu_row<S, A, gelu<A>, Lanes>>(x, y, F));
        else
            for_each_row(y.rows(), row_call<glu_row<S, A, gelu_tanh<A>, Lanes>>(x, y, F));
    });
}

void glu_backward(View dy, View x, GateKind kind, Grad dx) {
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        const int F = int(dy.columns());
        if (kind == GateKind::silu)
            for_each_row(dy.rows(), row_call<glu_row_grad<S, A, silu<A>, silu_grad<A>, Lanes>>(dy, x, dx, F));
        else if (kind == GateKind::gelu)
            for_each_row(dy.rows(), row_call<glu_row_grad<S, A, gelu<A>, gelu_grad<A>, Lanes>>(dy, x, dx, F));
        else
            for_each_row(dy.rows(), row_call<glu_row_grad<S, A, gelu_tanh<A>, gelu_tanh_grad<A>, Lanes>>(dy, x, dx, F));
    });
}

}  // namespace masquerade::DEVICE

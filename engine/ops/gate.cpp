// SPDX-License-Identifier: MIT
// The op glu, the gated linear unit.
#include "engine/math/gate.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Calls f(G()), where G is the activation of the gate.
template <class F>
void for_gate(GateKind kind, F f) {
    if (kind == GateKind::silu)
        f(Silu());
    else if (kind == GateKind::gelu)
        f(Gelu());
    else
        f(GeluTanh());
}

}  // namespace

void glu_forward(View x, GateKind kind, View y) {
    for_gate(kind, [&]<class G>(G) {
        for_packet_rows(x, y.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
            return row_call<glu_row<S, A, G, Lanes>>(x, y, y.columns());
        });
    });
}

void glu_backward(View dy, View x, GateKind kind, Grad dx) {
    if (!dx) return;
    for_gate(kind, [&]<class G>(G) {
        for_packet_rows(x, dy.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
            return row_call<glu_row_grad<S, A, G, Lanes>>(dy, x, dx, dy.columns());
        });
    });
}

}  // namespace masquerade::DEVICE

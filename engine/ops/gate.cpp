// SPDX-License-Identifier: MIT
// The op glu, the gated linear unit.
#include "engine/math/gate.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Runs glu with the activation g.
template <class S, class A, A g(A)>
void forward(const View& x, const View& y) {
    for_each_row(y.rows(), in_packets<S>([&]<class Lanes>(Lanes) {
                     return row_call<glu_row<S, A, g, Lanes>>(x, y, int(y.columns()));
                 }));
}
template <class S, class A, A g(A), A slope(A)>
void backward(const View& dy, const View& x, const Grad& dx) {
    for_each_row(dy.rows(), in_packets<S>([&]<class Lanes>(Lanes) {
                     return row_call<glu_row_grad<S, A, g, slope, Lanes>>(dy, x, dx, int(dy.columns()));
                 }));
}

}  // namespace

void glu_forward(View x, GateKind kind, View y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        if (kind == GateKind::silu)
            forward<S, A, silu<A>>(x, y);
        else if (kind == GateKind::gelu)
            forward<S, A, gelu<A>>(x, y);
        else
            forward<S, A, gelu_tanh<A>>(x, y);
    });
}

void glu_backward(View dy, View x, GateKind kind, Grad dx) {
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        if (kind == GateKind::silu)
            backward<S, A, silu<A>, silu_grad<A>>(dy, x, dx);
        else if (kind == GateKind::gelu)
            backward<S, A, gelu<A>, gelu_grad<A>>(dy, x, dx);
        else
            backward<S, A, gelu_tanh<A>, gelu_tanh_grad<A>>(dy, x, dx);
    });
}

}  // namespace masquerade::DEVICE

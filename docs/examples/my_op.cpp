// SPDX-License-Identifier: MIT
// An op of one's own, outside the engine: y = x sigmoid(x), and the ladder that every op of the engine climbs.
#include <cstdio>

#include "engine/check/ladder.h"
#include "engine/math/scalar.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

using namespace masquerade;
using namespace masquerade::cpu;

// The formulas, once: float, double, bf16 and the complex numbers of the gradient check instantiate them.
template <class A>
HD A sigmoid(A x) {
    return A(1) / (A(1) + exp_of(-x));
}

template <class A>
HD A swish_point(A x) {
    return x * sigmoid(x);
}
// d swish / dx = s + x s (1 - s)
template <class A>
HD A swish_point_grad(A dy, A x) {
    const A s = sigmoid(x);
    return dy * (s + x * s * (A(1) - s));
}

void swish_forward(View x, View y) {
    expect_same_shape("swish", "x", x, "y", y);
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), y.as<S>(), false, point_call<swish_point<A>>(by_point<S>(x)));
    });
}

void swish_backward(View dy, View x, Grad dx) {
    expect_same_shape("swish backward", "dy", dy, "x", x);
    expect_grad("swish backward", "dx", dx, x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        store_points(x.count(), dx.view.as<S>(), dx.add,
                     point_call<swish_point_grad<A>>(by_point<S>(dy), by_point<S>(x)));
    });
}

// One row of a table, as the engine's own ops have it.
ladder::Op swish() {
    return {"swish", [](ladder::Sizes n) {
                ladder::Case c;
                c.input("x", {n.rows, n.columns}).by_row();
                c.output("y", {n.rows, n.columns}).by_row();
                c.forward = [](const ladder::Call& a) { swish_forward(a("x"), a("y")); };
                c.backward = [](const ladder::Call& a) { swish_backward(a.d("y"), a("x"), a.grad("x")); };
                return c;
            }};
}

int main() {
    ladder::Findings findings;
    findings.op = "swish";
    ladder::check_calculus(swish(), findings);
    ladder::check_precision(swish(), findings);
    ladder::check_contract(swish(), findings);
    for (const auto& [tensor, errors] : findings.tensors)
        std::printf("swish %-3s complex step %8.1e  f32 %8.1e  bf16 %8.1e\n", tensor.c_str(), errors.complex_step,
                    errors.f32, errors.bf16);
    for (const std::string& fault : findings.faults) std::printf("wrong: %s\n", fault.c_str());
    std::printf("%ld checks, %zu wrong\n", findings.checks, findings.faults.size());
    return findings.faults.empty() ? 0 : 1;
}

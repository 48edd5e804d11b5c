// SPDX-License-Identifier: MIT
// Defines a new op outside the engine, y = x sigmoid(x), and runs the checks on it that every op of the engine passes
// (the ladder, engine/check/ladder.h).
#include <cstdio>

#include "engine/check/ladder.h"
#include "engine/math/scalar.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

using namespace masquerade;
using namespace masquerade::cpu;

// The formulas are written once, as templates. They are instantiated with float, double and, for the gradient check,
// complex numbers; bf16 is computed in float.
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
    expect_shape("swish", "y", y, x.shape, x.dtype);
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, swish_point<A>>({y}, x); });
}

void swish_backward(View dy, View x, Grad dx) {
    expect_shape("swish backward", "dy", dy, x.shape, x.dtype);
    expect_grad("swish backward", "dx", dx, x);
    for_type(x.dtype, [&]<class S, class A>(S, A) { store_points<S, swish_point_grad<A>>(dx, dy, x); });
}

// Describes the op for the ladder, in the same form as the rows of the engine's own table of ops.
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

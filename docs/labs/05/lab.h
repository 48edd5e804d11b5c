// SPDX-License-Identifier: MIT
// Lab 5: what is to be written in lab.cpp, in the words of the engine: a formula of one row, as in engine/math/row.h,
// and the op that runs it over all rows, as in engine/ops/latent.cpp.
#pragma once
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade {

// A row of x holds two halves of F numbers each, a | b:                                                    Shazeer 2020
//     y_i = a_i s(a_i) b_i,   s(a) = 1 / (1 + exp(-a))
// S is the type that tensors are stored in, A the type of the arithmetic (float for bf16, else S). Lanes is who works
// on the row: one CPU thread, or one of several lanes, each of which does its own columns.
template <class S, class A, class Lanes>
void swiglu_row(Lanes lanes, const S* x, S* y, int F);
// The gradient of the row x, da | db, of that of the row y: stored, or added to what is there.
template <class S, class A, class Lanes>
void swiglu_row_grad(Lanes lanes, const S* dy, const S* x, S* dx, bool add, int F);

namespace DEVICE {
// x (N,2F) -> y (N,F). Throws Error, with the path of the tensor, where the columns of x are odd or y does not fit.
void swiglu_forward(View x, View y);
// dx (N,2F) of dy (N,F), stored or added; absent: nothing to do. Throws Error where a shape or type does not fit.
void swiglu_backward(View dy, View x, Grad dx);
}  // namespace DEVICE

// One of `lanes` lanes that share a row, as the threads of a warp do: it does the columns lane, lane + lanes, ... Two
// of the verbs of engine/math/lanes.h, which are all that this op needs.
struct Lane {
    int lane, lanes;
};
template <class F>
void each(Lane l, int n, F f) {
    for (int i = l.lane; i < n; i += l.lanes) f(i);
}
template <class S, class F>
void store(Lane l, int n, S* to, bool add, F f) {
    for (int i = l.lane; i < n; i += l.lanes) put(to[i], f(i), add);
}

}  // namespace masquerade

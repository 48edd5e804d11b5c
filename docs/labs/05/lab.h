// SPDX-License-Identifier: MIT
// Lab 5: the functions that you write in lab.cpp, in the style of the engine: the formula of one row, as in
// engine/math/row.h, and the op that applies the formula to all rows, as in engine/ops/latent.cpp.
#pragma once
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade {

// A row of x consists of two halves of F numbers each, a | b. Computes a row of y (Shazeer 2020):
//     y_i = a_i s(a_i) b_i,   s(a) = 1 / (1 + exp(-a))
// S is the storage type of tensors. A is the type of the arithmetic: float if S is bf16, otherwise S. `lanes` says who
// computes the row: one CPU thread, or one of several lanes, each of which computes its own columns.
template <class S, class A, class Lanes>
void swiglu_row(Lanes lanes, const S* x, S* y, int F);
// Computes dx = da | db, the gradient of a row of x, from dy, the gradient of the row of y. Stores dx if `add` is
// false; otherwise, adds dx to the numbers that are there.
template <class S, class A, class Lanes>
void swiglu_row_grad(Lanes lanes, const S* dy, const S* x, S* dx, bool add, int F);

namespace DEVICE {
// Computes y (N,F) from x (N,2F). If the number of columns of x is odd, or if y has a wrong shape or type, throws an
// Error with the path of the tensor.
void swiglu_forward(View x, View y);
// Computes dx (N,2F) from dy (N,F), and stores or adds it as the Grad says. If dx is absent, does nothing. If a shape
// or type is wrong, throws an Error with the path of the tensor.
void swiglu_backward(View dy, View x, Grad dx);
}  // namespace DEVICE

// One of `lanes` lanes that share a row, as the threads of a warp do. This lane computes the columns lane, lane +
// lanes, lane + 2 lanes and so on. each() and store() are the two functions of engine/math/lanes.h that this op needs.
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

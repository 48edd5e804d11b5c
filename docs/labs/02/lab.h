// SPDX-License-Identifier: MIT
// Lab 2: what is to be written in lab.cpp.
#pragma once

// The forward, of each of the N rows of C numbers:
//     m = mean(x),   v = mean((x - m)^2),   n = (x - m) / sqrt(v + eps),   y = n w + b
// dy (N,C) is the gradient of y; x (N,C) and w (C) are what the forward read. Stores, and does not add to, the
// gradients dx (N,C), dw (C) and db (C).
void layernorm_backward(int N, int C, const double* dy, const double* x, const double* w, double eps, double* dx,
                        double* dw, double* db);

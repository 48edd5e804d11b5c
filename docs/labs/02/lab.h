// SPDX-License-Identifier: MIT
// Lab 2: the function that you write in lab.cpp.
#pragma once

// The backward of layer norm. The forward computes, for each of the N rows of C numbers:
//     m = mean(x),   v = mean((x - m)^2),   n = (x - m) / sqrt(v + eps),   y = n w + b
// dy (N,C) is the gradient of y; x (N,C) and w (C) are the inputs of the forward. Stores the gradients dx (N,C), dw (C)
// and db (C): whatever their memory contained before is overwritten.
void layernorm_backward(int N, int C, const double* dy, const double* x, const double* w, double eps, double* dx,
                        double* dw, double* db);

// SPDX-License-Identifier: MIT
// Lab 2: the function that you write in lab.cpp.
#pragma once

// The backward of layer norm. The forward computes, for each of the N rows of C numbers:
//     m = mean(x),   v = mean((x - m)^2),   n = (x - m) / sqrt(v + eps),   y = n w + b
// dy (N,C) is the gradient of y; x (N,C) and w (C) are the inputs of the forward. Stores the gradients dx (N,C), dw (C)
// and db (C): whatever their memory contained before is overwritten. The time for a row must grow in proportion to C,
// not to its square: the check also has rows of 40,000 numbers.
//
// In a class that gives each student a number of their own, m = share mean(x), and v = mean((x - m)^2) with this m.
// `make lab LAB=02 STUDENT=name` prints the share; write it into your file. Everywhere else, share is 1.
void layernorm_backward(int N, int C, const double* dy, const double* x, const double* w, double eps, double* dx,
                        double* dw, double* db);

// SPDX-License-Identifier: MIT
// Lab 3: the function that you write in lab.cpp.
#pragma once

// One head of causal attention over N rows of D numbers:
//     s_ij = q_i . k_j / sqrt(D) for j <= i,   p_i = softmax(s_i),   o_i = sum_j p_ij v_j
// q, k and v (N,D) are the inputs of this forward, and dy (N,D) is the gradient of o. The backward stores the gradients
// dq, dk and dv (N,D): whatever their memory contained before is overwritten.
//
// In a class that gives each student a number of their own, s_ij = sharpness q_i . k_j / sqrt(D). `make lab LAB=03
// STUDENT=name` prints the sharpness; write it into your file. Everywhere else, sharpness is 1.
void attention_backward(int N, int D, const double* q, const double* k, const double* v, const double* dy, double* dq,
                        double* dk, double* dv);

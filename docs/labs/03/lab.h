// SPDX-License-Identifier: MIT
// Lab 3: what is to be written in lab.cpp.
#pragma once

// One head of causal attention over N rows of D numbers:
//     s_ij = q_i . k_j / sqrt(D) for j <= i,   p_i = softmax(s_i),   o_i = sum_j p_ij v_j
// q, k, v (N,D) are what the forward read, dy (N,D) is the gradient of o. Stores, and does not add to, the gradients
// dq, dk and dv (N,D).
void attention_backward(int N, int D, const double* q, const double* k, const double* v, const double* dy, double* dq,
                        double* dk, double* dv);

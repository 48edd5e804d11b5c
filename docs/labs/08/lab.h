// SPDX-License-Identifier: MIT
// Lab 8: the functions that you write in lab.cpp. All results are stored: whatever their memory contained before is
// overwritten.
#pragma once

// Computes phi (M), the positive features of a row x of D numbers, from M directions w (M,D):
//     phi_m = exp(w_m . x - x . x / 2) / sqrt(M)
// If w is standard normal, the mean of phi(q) . phi(k) is exp(q . k) (Choromanski et al. 2020, lemma 1).
void features(int M, int D, const double* w, const double* x, double* phi);

// Computes y (N,D) by causal attention, in which the weights of the values v (N,D) are products of the features a and b
// (N,M) (Katharopoulos et al. 2020):
//     y_i = sum_{j <= i} (a_i . b_j) v_j / sum_{j <= i} (a_i . b_j)
// Time and memory must grow in proportion to N, not to its square.
void linear_attention(int N, int M, int D, const double* a, const double* b, const double* v, double* y);

// Computes the gradients da and db (N,M) and dv (N,D) from dy (N,D). Time and memory must grow in proportion to N.
void linear_attention_backward(int N, int M, int D, const double* a, const double* b, const double* v, const double* dy,
                               double* da, double* db, double* dv);

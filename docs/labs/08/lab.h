// SPDX-License-Identifier: MIT
// Lab 8: what is to be written in lab.cpp. All results are stored, not added.
#pragma once

// Positive features of a row x of D numbers, by M directions w (M,D):                  Choromanski et al. 2020, lemma 1
//     phi_m = exp(w_m . x - x . x / 2) / sqrt(M),   so that the mean of phi(q) . phi(k) over normal w is exp(q . k)
void features(int M, int D, const double* w, const double* x, double* phi);

// Causal attention whose weights are products of features a, b (N,M); v and y (N,D):    Katharopoulos et al. 2020
//     y_i = sum_{j <= i} (a_i . b_j) v_j / sum_{j <= i} (a_i . b_j)
// in time and memory that grow with N and not with its square.
void linear_attention(int N, int M, int D, const double* a, const double* b, const double* v, double* y);

// Its gradients da and db (N,M), dv (N,D), of dy (N,D). The same holds of time and memory.
void linear_attention_backward(int N, int M, int D, const double* a, const double* b, const double* v, const double* dy,
                               double* da, double* db, double* dv);

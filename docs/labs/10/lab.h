// SPDX-License-Identifier: MIT
// Lab 10: what is to be written in lab.cpp. A matrix lies row by row: A (M,K), B (K,N), C (M,N).
#pragma once
#include "docs/labs/10/fibers.h"

// C = A B:   C_ij = sum_k A_ik B_kj.   Stored, not added; for any M, N, K of at least 1, on one thread. An address is
// that of a float: it may be no multiple of 16 or 64 bytes.
void naive(int M, int N, int K, const float* A, const float* B, float* C);    // as the formula: a sum for each C_ij
void ordered(int M, int N, int K, const float* A, const float* B, float* C);  // the innermost loop goes along rows
void tiled(int M, int N, int K, const float* A, const float* B, float* C);    // in tiles, for registers and caches

// The roofline:                                                              Williams, Waterman & Patterson 2009
// additions and multiplications of the product;
double flops(int M, int N, int K);
// bytes that pass between memory and processor at least: each float of A, B and C once;
double bytes(int M, int N, int K);
// flops a second that the product cannot exceed on a machine of `peak` flops and `bandwidth` bytes a second.
double bound(double peak, double bandwidth, int M, int N, int K);

// The same product as a CUDA kernel. A block has T x T threads and makes the tile of C whose rows begin at T blockIdx.y
// and whose columns begin at T blockIdx.x; there are as many blocks as cover C. A thread makes the number in row
// threadIdx.y and column threadIdx.x of the tile. A number in shared memory is a Float, too: __shared__ Float a[T][T]
constexpr int T = 16;
__global__ void product_kernel(int M, int N, int K, const Float* A, const Float* B, Float* C);

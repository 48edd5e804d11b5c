// SPDX-License-Identifier: MIT
// Lab 10: the functions that you write in lab.cpp. The matrices A (M,K), B (K,N) and C (M,N) are stored row by row.
#pragma once
#include "docs/labs/10/fibers.h"

// Each of the three functions computes C = A B, that is C_ij = sum_k A_ik B_kj, on one thread. C is stored: whatever
// its memory contained before is overwritten. M, N and K are at least 1. The addresses of the matrices are aligned only
// for float; they need not be multiples of 16 or 64 bytes.
void naive(int M, int N, int K, const float* A, const float* B, float* C);    // computes one C_ij after the other
void ordered(int M, int N, int K, const float* A, const float* B, float* C);  // the innermost loop goes along rows
void tiled(int M, int N, int K, const float* A, const float* B, float* C);    // computes tiles that fit into registers

// The roofline (Williams, Waterman & Patterson 2009).
// Returns the number of additions and multiplications of the product.
double flops(int M, int N, int K);
// Returns the least number of bytes that must pass between memory and processor: each float of A, B and C once.
double bytes(int M, int N, int K);
// Returns the upper bound of the product's speed, in flops per second, on a machine that computes `peak` flops per
// second and whose memory transfers `bandwidth` bytes per second.
double bound(double peak, double bandwidth, int M, int N, int K);

// The same product as a CUDA kernel. A block has T x T threads and computes one tile of C. The rows of the tile begin
// at T blockIdx.y, and its columns begin at T blockIdx.x. The blocks together cover C. A thread computes the number in
// row threadIdx.y and column threadIdx.x of the tile. Numbers in shared memory have the type Float, too:
// __shared__ Float a[T][T]
constexpr int T = 16;
__global__ void product_kernel(int M, int N, int K, const Float* A, const Float* B, Float* C);
